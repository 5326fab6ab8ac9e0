package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// codec reads what hooks outside Go answer at a phase.
type codec struct {
	wire   *belay.WirePhase
	keys   []string // of the phase's output
	words  []string // of its decision; nil if it has none
	quoted *regexp.Regexp
	quiet  bool // nobody waits for the answer, which may hold notes and jobs alone
}

// synonyms are keys that other agents have for ours. They are not read at turn.stop,
// where continue would be the contrary.
var synonyms = map[string]string{
	"continue": "decision", "blocked": "decision", "additionalContext": "context", "modified": "input",
}

func newCodec(wire *belay.WirePhase, execution hook.Execution) (*codec, error) {
	described, err := belay.Schema(wire.Name())
	if err != nil {
		return nil, fmt.Errorf("declare: %w", err)
	}
	var schema struct {
		Properties map[string]struct {
			Enum []string `json:"enum"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(described.Output, &schema); err != nil {
		return nil, fmt.Errorf("declare: schema of %s: %w", wire.Name(), err)
	}
	c := &codec{wire: wire, keys: slices.Sorted(maps.Keys(schema.Properties)), words: schema.Properties["decision"].Enum}
	c.quiet = execution != hook.Blocking && execution != hook.Deadline
	all := append(slices.Collect(maps.Keys(synonyms)), c.keys...)
	all = append(all, "decision", "reason")
	c.quoted = regexp.MustCompile("(?i)[\"'`“‘«](" + strings.Join(all, "|") + ")\\\\?[\"'`”’»]")
	return c, nil
}

// invalid is an answer that makes no sense. What it quotes is not stored.
func invalid(message string, err error) error {
	return &hook.SafeError{Code: hook.CodeOutputInvalid, Message: message, Err: err}
}

// read reads standard output, or the body of a response: nothing, one JSON object, or
// text.
func (c *codec) read(out []byte) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(out)
	if len(trimmed) == 0 {
		return nil, nil
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return c.object(trimmed)
	}
	return c.text(trimmed)
}

var (
	// escapes are colour codes and other sequences for a terminal.
	escapes = regexp.MustCompile(`\x1b\[[0-9;:?<=>]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[\x20-\x2f]*[\x30-\x7e]|\x{9b}[0-9;:?]*[\x40-\x7e]`)
	// unicodeEscapes spell a character in JSON.
	unicodeEscapes = regexp.MustCompile(`\\u00[0-9A-Fa-f]{2}`)
)

// text reads output that is not a JSON object. It is shown, unless there seems to be an
// answer in it: a debug line in front of a denial must not turn it into consent.
func (c *codec) text(out []byte) (json.RawMessage, error) {
	if !utf8.Valid(out) {
		return nil, invalid("the output is neither JSON nor text", nil)
	}
	shown := string(out)
	if strings.ContainsAny(shown, "\x1b\u009b") {
		shown = escapes.ReplaceAllString(shown, "")
	}
	if i := strings.IndexFunc(shown, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) || r == 0x7f }); i >= 0 {
		return nil, invalid("the output is neither JSON nor text", nil)
	}
	for line := range strings.FieldsFuncSeq(shown, func(r rune) bool { return strings.ContainsRune("\n\v\f\r\u0085\u2028\u2029", r) }) {
		seen := strings.TrimLeftFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
		if strings.HasPrefix(seen, "{") || strings.HasPrefix(seen, "[") {
			return nil, invalid("there is JSON among the output, which is not one JSON object: print what is for people to standard error", nil)
		}
	}
	if key := c.quotedKey(shown); key != "" {
		return nil, invalid("the output is text with an answer in it: print what is for people to standard error",
			fmt.Errorf("it contains %q", key))
	}
	shown = strings.TrimSpace(strings.Trim(shown, "\ufeff"))
	if shown == "" {
		return nil, nil
	}
	return encode(map[string]any{"output": shown})
}

// quotedKey finds a key of answers between quotes, however it is spelled.
func (c *codec) quotedKey(text string) string {
	if strings.Contains(text, `\u00`) {
		text = unicodeEscapes.ReplaceAllStringFunc(text, func(e string) string {
			var r string
			if json.Unmarshal([]byte(`"`+e+`"`), &r) != nil {
				return e
			}
			return r
		})
	}
	if !strings.ContainsAny(text, "\"'`“‘«") {
		return "" // long texts mostly have none
	}
	if m := c.quoted.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func encode(value any) (json.RawMessage, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return data, nil
}

// block is the answer of a hook that says no without words, by its exit code.
func (c *codec) block(reason string) (json.RawMessage, error) {
	return encode(c.blocking("deny", reason, nil))
}

// blocking adds a denial to an answer, in the words of the phase. Where nothing can be
// blocked, that is recorded and told to the model, and changes nothing.
func (c *codec) blocking(word, reason string, answer map[string]any) map[string]any {
	if answer == nil {
		answer = make(map[string]any)
	}
	switch {
	case slices.Contains(c.words, word):
		answer["decision"], answer["reason"] = word, reason
	case slices.Contains(c.words, "deny"):
		answer["decision"], answer["reason"] = "deny", reason
	case slices.Contains(c.words, "continue"):
		answer["decision"], answer["reason"] = "continue", reason
	default:
		delete(answer, "reason")
		note := map[string]string{"code": "block_ignored", "message": "it answered " + word + " where nothing can be blocked"}
		answer["audit"] = appendTo(answer["audit"], note)
		if c.quiet {
			return answer
		}
		told := fmt.Sprintf("A hook answered %s at %s, where nothing can be blocked: %s", word, c.wire.Name(), reason)
		if slices.Contains(c.keys, "context") {
			answer["context"] = appendTo(answer["context"], map[string]string{"text": told})
		} else if answer["output"] == nil {
			answer["output"] = told
		}
	}
	return answer
}

// appendTo adds an entry to a list that may be JSON yet.
func appendTo(list, entry any) any {
	entries := []any{}
	if raw, ok := list.(json.RawMessage); ok {
		var old []json.RawMessage
		if json.Unmarshal(raw, &old) != nil {
			return list // which is a fault, and is reported as one
		}
		for _, o := range old {
			entries = append(entries, o)
		}
	}
	return append(entries, entry)
}

// member is a key of an answer with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members reads the keys of an object in order, those that are there twice included.
func members(object []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	var all []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		m := member{}
		m.key, _ = key.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		all = append(all, m)
	}
	return all, nil
}

// object reads an answer that is a JSON object, strictly. A denial with a fault beside
// it still denies.
func (c *codec) object(object []byte) (json.RawMessage, error) {
	if string(object) == "{}" { // as most answers are
		return nil, nil
	}
	all, err := members(object)
	if err != nil {
		return nil, invalid("the answer is not JSON", err)
	}
	answer, err := c.canonical(all)
	if err == nil {
		var data json.RawMessage
		if data, err = encode(answer); err == nil {
			if err = c.wire.CheckAnswer(data); err == nil {
				return data, nil
			}
		}
	}
	if word, reason := c.denial(all); word != "" {
		return encode(c.blocking(word, reason, nil))
	}
	return nil, invalid("the answer does not fit the phase", err)
}

// isStop reports whether the phase is the one where the synonyms do not count.
func (c *codec) isStop() bool { return slices.Contains(c.words, "continue") }

// denial finds a denial among the keys, whatever else is wrong with them. There is none
// where nothing can be denied.
func (c *codec) denial(all []member) (word, reason string) {
	if !slices.Contains(c.words, "deny") {
		return "", ""
	}
	for _, m := range all {
		switch value := string(m.value); m.key {
		case "decision":
			if value == `"deny"` && word == "" || value == `"halt"` {
				word = strings.Trim(value, `"`)
			}
		case "continue":
			if value == "false" && word == "" {
				word = "deny"
			}
		case "blocked":
			if value == "true" && word == "" {
				word = "deny"
			}
		case "reason":
			_ = json.Unmarshal(m.value, &reason) // a reason that is no text is none
		}
	}
	return word, reason
}

// canonical turns the keys of an answer into those of the phase.
func (c *codec) canonical(all []member) (map[string]any, error) {
	answer := make(map[string]any, len(all))
	said, seen := decisions{}, make(map[string]bool, len(all))
	var reason string
	for _, m := range all {
		key := m.key
		if _, other := synonyms[key]; other && c.isStop() {
			return nil, fmt.Errorf("%q is not read at turn.stop: say \"decision\": \"continue\"", key)
		}
		if seen[key] {
			return nil, fmt.Errorf("the key %q is there twice", key)
		}
		seen[key] = true
		if bytes.Equal(m.value, []byte("null")) {
			return nil, fmt.Errorf("%q is null: leave it out", key)
		}
		var err error
		switch key {
		case "decision", "continue", "blocked":
			err = said.hear(key, m.value)
		case "reason":
			if json.Unmarshal(m.value, &reason) != nil {
				err = fmt.Errorf("%q is not a text", key)
			}
		case "additionalContext", "modified":
			to := synonyms[key]
			value := m.value
			if key == "additionalContext" && value[0] == '"' { // as other agents have it
				value, err = encode([]map[string]json.RawMessage{{"text": value}})
			}
			if !slices.Contains(c.keys, to) {
				return nil, fmt.Errorf("%q has no place in an answer at %s", key, c.wire.Name())
			}
			err = errors.Join(err, put(answer, to, value))
		default:
			err = put(answer, key, m.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.decide(answer, said, reason)
}

// put sets a key, unless its synonym says something else.
func put(answer map[string]any, key string, value json.RawMessage) error {
	if before, ok := answer[key].(json.RawMessage); ok && !sameJSON(before, value) {
		return fmt.Errorf("%q and its synonym disagree", key)
	}
	answer[key] = value
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, errP := json.Marshal(x)
	q, errQ := json.Marshal(y)
	return errP == nil && errQ == nil && bytes.Equal(p, q)
}

// decisions are what the keys that decide said.
type decisions struct {
	word            string // of decision
	denies, permits bool   // of its synonyms
}

func (d *decisions) hear(key string, value json.RawMessage) error {
	if key == "decision" {
		if json.Unmarshal(value, &d.word) != nil {
			return fmt.Errorf("%q is not a text", key)
		}
		return nil
	}
	var yes bool
	if json.Unmarshal(value, &yes) != nil {
		return fmt.Errorf("%q is neither true nor false", key)
	}
	if yes == (key == "blocked") {
		d.denies = true
	} else {
		d.permits = true
	}
	return nil
}

// decide puts the decision into the words of the phase.
func (c *codec) decide(answer map[string]any, said decisions, reason string) (map[string]any, error) {
	word := said.word
	refuses := word == "deny" || word == "halt"
	switch {
	case said.denies && (said.permits || word != "" && !refuses), said.permits && refuses:
		return nil, errors.New(`"decision" and its synonyms disagree`)
	case said.denies && word == "":
		word, refuses = "deny", true
	}
	phase := c.wire.Name()
	switch {
	case word == "" || word == "pass":
		if reason != "" && c.words != nil {
			answer["reason"] = reason
		}
		return answer, nil
	case slices.Contains(c.words, word):
		answer["decision"] = word
		if reason != "" {
			answer["reason"] = reason
		}
		return answer, nil
	case word == "allow":
		return nil, fmt.Errorf(`"decision" is "allow", which is for approval.request: at %s say "pass"`, phase)
	case word == "continue":
		return nil, fmt.Errorf(`"decision" is "continue", which is for turn.stop: at %s say "pass"`, phase)
	case word == "ask" && c.words != nil, word == "halt" && c.isStop():
		return nil, fmt.Errorf(`"decision" is %q, and %s takes %s`, word, phase, strings.Join(c.words, ", "))
	case word == "ask" || refuses:
		return c.blocking(word, reason, answer), nil
	default:
		return nil, fmt.Errorf(`"decision" is %q, which is none of pass, ask, deny, halt`, word)
	}
}
