package declare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/phasejson"
)

// codec reads the answers of commands, workers and webhooks at one phase.
type codec struct {
	id     string // the hook's id
	wire   *phasejson.Phase
	keys   []string // the keys of the phase's output
	words  []string // the possible decisions; nil if the phase has none
	quoted *regexp.Regexp
	quiet  bool // no one waits for the answer: it may have only notes and jobs
}

// synonyms maps keys that other agents use to our keys. They are not allowed at
// turn.stop, because continue would mean the opposite there.
var synonyms = map[string]string{
	"continue": "decision", "blocked": "decision", "additionalContext": "context", "modified": "input",
}

func newCodec(wire *phasejson.Phase, execution hook.Execution) (*codec, error) {
	described, err := phasejson.Describe(wire.Name())
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

// invalid returns the error for an invalid answer. err, which may quote the output, is
// not stored.
func invalid(message string, err error) error {
	return &hook.SafeError{Code: codes.OutputInvalid, Message: message, Err: err}
}

// read reads standard output, or the body of an HTTP response. If the run has failed,
// fault is its error. Then only a denial in the output counts.
func (c *codec) read(out *output, fault error) (json.RawMessage, error) {
	if fault != nil {
		return c.settle(out.denials(), nil, fault)
	}
	answer, err := c.parse(bytes.TrimSpace(out.kept))
	return c.settle(out.denials(), answer, err)
}

// settle decides what an output means. A denial counts even if the rest of the output is
// invalid. Without a denial, the parsed answer or the error counts.
func (c *codec) settle(found *denials, answer map[string]any, err error) (json.RawMessage, error) {
	otherwise := ""
	if failed, ok := errors.AsType[*hook.SafeError](err); ok {
		otherwise = failed.Reason
	}
	if denial := c.denial(found, otherwise); denial != nil {
		if said := answer["decision"]; err != nil || said != denial["decision"] && said != "halt" {
			return encode(denial)
		}
	}
	if err != nil || answer == nil {
		return nil, err
	}
	return encode(answer)
}

// denial returns the most severe denial that counts at the phase, or nil. The argument
// otherwise is used as the reason if the denial has none.
func (c *codec) denial(found *denials, otherwise string) map[string]any {
	kinds := []denialKind{saysHalt, saysDeny, saysSynonym}
	switch {
	case c.isStop():
		kinds = []denialKind{saysDeny, saysContinue}
	case !slices.Contains(c.words, "deny"):
		return nil // this phase cannot deny
	}
	for _, kind := range kinds {
		if !found.said[kind] {
			continue
		}
		word := "deny"
		if kind == saysHalt {
			word = "halt"
		}
		return c.blocking(word, cmp.Or(found.reasons[kind], otherwise), nil)
	}
	return nil
}

// parse reads the whole output. It may be empty, one JSON object, null, or text. A nil
// answer means that the hook has no opinion.
func (c *codec) parse(out []byte) (map[string]any, error) {
	switch {
	case len(out) == 0:
		return nil, nil
	case !json.Valid(out):
		return c.text(out)
	case out[0] == '{':
		return c.object(out)
	default:
		return nil, noObject(out)
	}
}

// noObject returns the error for a JSON value that is not an object. For null it returns
// no error: null means that the hook has no opinion.
func noObject(value []byte) error {
	if string(value) == "null" {
		return nil
	}
	return invalid("the answer is JSON, but not an object: print an object, or nothing", nil)
}

// text reads output that is not JSON. The text is shown to users. If it seems to contain
// an answer, that is an error: a debug line before an answer must not hide the answer.
func (c *codec) text(out []byte) (map[string]any, error) {
	if !utf8.Valid(out) {
		return nil, invalid("the output is neither JSON nor text", nil)
	}
	shown := string(withoutEscapes(out))
	if i := strings.IndexFunc(shown, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r", r) || r == 0x7f }); i >= 0 {
		return nil, invalid("the output is neither JSON nor text", nil)
	}
	for line := range strings.FieldsFuncSeq(shown, func(r rune) bool { return strings.ContainsRune("\n\v\f\r\u0085\u2028\u2029", r) }) {
		seen := strings.TrimLeftFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
		if strings.HasPrefix(seen, "{") || strings.HasPrefix(seen, "[") {
			return nil, invalid("the output mixes JSON and text: print one JSON object, and print messages for people to standard error", nil)
		}
	}
	if key := cmp.Or(c.quotedKey(shown), c.quotedKey(string(out))); key != "" {
		return nil, invalid("the output is text that contains an answer: print only the answer, and print messages for people to standard error",
			fmt.Errorf("it contains %q", key))
	}
	shown = strings.TrimSpace(strings.Trim(shown, "\ufeff"))
	switch {
	case shown == "":
		return nil, nil
	case json.Valid([]byte(shown)): // for example a coloured null
		return nil, noObject([]byte(shown))
	default:
		return map[string]any{"output": shown}, nil
	}
}

// unicodeEscapes matches the \u00XX escapes of JSON.
var unicodeEscapes = lazyregexp.New(`\\u00[0-9A-Fa-f]{2}`)

// quotedKey finds a key of an answer between quotes, even if characters of the key are
// escaped.
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
		return "" // fast path: most long texts have no quotes
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

// block returns a denial for a hook that denies by its exit code, or that must not run.
func (c *codec) block(reason string) (json.RawMessage, error) {
	return encode(c.blocking("deny", reason, nil))
}

// blockOr is like block, for a hook with output. A halt in the output is more severe than
// a denial, so it wins.
func (c *codec) blockOr(found *denials, reason, otherwise string) (json.RawMessage, error) {
	word, kind := "deny", saysDeny
	if found.said[saysHalt] && slices.Contains(c.words, "halt") {
		word, kind = "halt", saysHalt
	}
	return encode(c.blocking(word, cmp.Or(reason, found.reasons[kind], otherwise), nil))
}

// blocking adds a denial to an answer, in the form that the phase uses. At a phase that
// cannot block, the denial is only recorded and shown to users and the model.
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
		note := map[string]string{"code": "block_ignored", "message": "the hook answered " + word + " at a phase that cannot block"}
		answer["audit"] = appendTo(answer["audit"], note)
		if c.quiet {
			return answer
		}
		told := fmt.Sprintf("Hook %q answered %s at %s, a phase that cannot block: %s", c.id, word, c.wire.Name(), cmp.Or(reason, "no reason was given"))
		answer["output"] = appendText(answer["output"], told)
	}
	return answer
}

// appendText adds a line to a text. The text may still be encoded as JSON.
func appendText(text any, line string) any {
	raw, ok := text.(json.RawMessage)
	if !ok {
		return line
	}
	var old string
	if json.Unmarshal(raw, &old) != nil {
		return text // check reports this mistake later
	}
	return old + "\n" + line
}

// appendTo adds an entry to a list. The list may still be encoded as JSON.
func appendTo(list, entry any) any {
	entries := []any{}
	if raw, ok := list.(json.RawMessage); ok {
		var old []json.RawMessage
		if json.Unmarshal(raw, &old) != nil {
			return list // check reports this mistake later
		}
		for _, o := range old {
			entries = append(entries, o)
		}
	}
	return append(entries, entry)
}

// member is a key of a JSON object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the keys of a JSON object in their order, with duplicates.
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

// object strictly reads an answer that is a JSON object.
func (c *codec) object(object []byte) (map[string]any, error) {
	if string(object) == "{}" { // most answers are empty
		return nil, nil
	}
	all, err := members(object)
	if err != nil {
		return nil, invalid("the answer is not JSON", err)
	}
	answer, err := c.canonical(all)
	if err == nil {
		err = c.check(answer, all)
	}
	if err != nil {
		return nil, invalid("the answer is not valid for this phase", err)
	}
	return answer, nil
}

// check validates an answer against the phase. Errors name the keys that the hook wrote.
func (c *codec) check(answer map[string]any, written []member) error {
	data, err := encode(answer)
	if err != nil {
		return err
	}
	if err = c.wire.CheckAnswer(data); err == nil {
		return nil
	}
	faults := strings.Split(err.Error(), "; ")
	for _, m := range written {
		to := synonyms[m.key]
		if to == "" || slices.ContainsFunc(written, func(o member) bool { return o.key == to }) {
			continue
		}
		for i, fault := range faults {
			if rest, ok := strings.CutPrefix(fault, "/"+to); ok && rest != "" && (rest[0] == '/' || rest[0] == ':') {
				faults[i] = "/" + m.key + rest
			}
		}
	}
	return errors.New(strings.Join(faults, "; "))
}

// isStop reports whether the phase is turn.stop, where synonyms are not allowed.
func (c *codec) isStop() bool { return slices.Contains(c.words, "continue") }

// canonical translates the keys of an answer into the keys of the phase.
func (c *codec) canonical(all []member) (map[string]any, error) {
	answer := make(map[string]any, len(all))
	said, seen := decisions{}, make(map[string]bool, len(all))
	var reason string
	for _, m := range all {
		key := m.key
		if _, other := synonyms[key]; other && c.isStop() {
			return nil, fmt.Errorf("the key %q is not allowed at turn.stop: write \"decision\": \"continue\"", key)
		}
		if seen[key] {
			return nil, fmt.Errorf("the key %q occurs twice", key)
		}
		seen[key] = true
		if bytes.Equal(m.value, []byte("null")) {
			return nil, fmt.Errorf("the value of %q is null: remove the key", key)
		}
		var err error
		switch key {
		case "decision", "continue", "blocked":
			err = said.hear(key, m.value)
		case "reason":
			if json.Unmarshal(m.value, &reason) != nil {
				err = fmt.Errorf("%q is not a text", key)
			}
		default:
			to := cmp.Or(synonyms[key], key)
			if to != key && !slices.Contains(c.keys, to) {
				return nil, fmt.Errorf("an answer at %[2]s has no key %[1]q", key, c.wire.Name())
			}
			value := m.value
			if to == "context" {
				value, err = reminders(value)
			}
			err = errors.Join(err, put(answer, to, key, value))
		}
		if err != nil {
			return nil, err
		}
	}
	return c.decide(answer, said, reason)
}

// reminders converts the value of context to a list of objects, as phases expect it.
// Hooks may also write a text, or a list of texts.
func reminders(value json.RawMessage) (json.RawMessage, error) {
	list := []json.RawMessage{value}
	switch value[0] {
	case '"':
	case '[':
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
	default:
		return value, nil // check reports this mistake later
	}
	for i, entry := range list {
		if entry[0] != '"' {
			continue
		}
		var err error
		if list[i], err = encode(map[string]json.RawMessage{"text": entry}); err != nil {
			return nil, err
		}
	}
	return encode(list)
}

// withReminders converts context in an answer, see reminders.
func withReminders(answer json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(answer, &fields) != nil || len(fields["context"]) == 0 {
		return answer
	}
	context, err := reminders(fields["context"])
	if err != nil {
		return answer
	}
	fields["context"] = context
	if changed, err := encode(fields); err == nil {
		return changed
	}
	return answer
}

// put sets a key of the answer. written is how the hook wrote the key: by its name or by
// a synonym. put fails if the hook wrote both with different values.
func put(answer map[string]any, key, written string, value json.RawMessage) error {
	if before, ok := answer[key].(json.RawMessage); ok && !sameJSON(before, value) {
		other := key
		if written == key {
			for synonym, to := range synonyms {
				if to == key {
					other = synonym
				}
			}
		}
		return fmt.Errorf("%q and %q disagree", other, written)
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

// decisions are the values of decision and its synonyms in an answer.
type decisions struct {
	word            string // the value of decision
	denies, permits string // the synonym that denies or permits, or ""
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
		d.denies = key
	} else {
		d.permits = key
	}
	return nil
}

// decide adds the decision to the answer, in the form that the phase uses.
func (c *codec) decide(answer map[string]any, said decisions, reason string) (map[string]any, error) {
	word := said.word
	refuses := word == "deny" || word == "halt"
	switch {
	case said.denies != "" && said.permits != "":
		return nil, fmt.Errorf("%q and %q disagree", said.denies, said.permits)
	case said.denies != "" && word != "" && !refuses:
		return nil, fmt.Errorf(`"decision" and %q disagree`, said.denies)
	case said.permits != "" && refuses:
		return nil, fmt.Errorf(`"decision" and %q disagree`, said.permits)
	case said.denies != "" && word == "":
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
		return nil, fmt.Errorf(`the decision "allow" works only at approval.request: at %s write "pass"`, phase)
	case word == "continue":
		return nil, fmt.Errorf(`the decision "continue" works only at turn.stop: at %s write "pass"`, phase)
	case word == "ask" && c.words != nil, word == "halt" && c.isStop():
		return nil, fmt.Errorf(`the decision %q is not allowed at %s: write one of %s`, word, phase, strings.Join(c.words, ", "))
	case word == "ask" || refuses:
		return c.blocking(word, reason, answer), nil
	default:
		return nil, fmt.Errorf(`the decision %q is unknown: write pass, ask, deny or halt`, word)
	}
}
