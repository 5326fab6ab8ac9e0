package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

const (
	// mostFields is how many things a server may ask for at a time.
	mostFields = 20
	// mostQuestion bounds the text of a question, in characters.
	mostQuestion = 4_000
	// mostPut is how often a question is put before it counts as not answered.
	mostPut = 3
)

// The answers to a server's question.
const (
	accepted  = "accept"
	declined  = "decline"
	cancelled = "cancel" // nobody answered
)

// openCall is a call that is under way, and that a person can be asked for.
type openCall struct {
	ctx     context.Context //nolint:containedctx // it is the call's
	session string
	ask     func(ctx context.Context, question string) (string, error)
}

// openCallKey is the key of the call in the context of its requests.
type openCallKey struct{}

// opens notes that a call is under way, until the function is called that it returns.
func (l *link) opens(c *openCall) (closes func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = slices.DeleteFunc(l.open, func(other *openCall) bool { return other == c })
	}
}

// asker is the call that a question of the server belongs to. The protocol does not say:
// if calls of several sessions are under way, nobody knows whom to ask.
func (l *link) asker(ctx context.Context) (*openCall, error) {
	if c, ok := ctx.Value(openCallKey{}).(*openCall); ok {
		return c, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return nil, errors.New("no call is under way")
	}
	last := l.open[len(l.open)-1]
	for _, c := range l.open {
		if c.session != last.session {
			return nil, errors.New("calls of several sessions are under way")
		}
	}
	return last, nil
}

// elicit puts a question of the server to the person whose session calls one of its tools.
func (l *link) elicit(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	c, err := l.asker(ctx)
	if err != nil {
		l.logger.Warn("mcp server asks and nobody can answer", "server", l.name, "error", err)
		return &mcp.ElicitResult{Action: cancelled}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	f, err := readForm(l.name, l.spec.redact.Replace(r.Params.Message), r.Params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	answer, err := f.fill(ctx, c.ask)
	if err != nil {
		l.logger.Warn("mcp server asks and nobody answers", "server", l.name, "error", err)
		return &mcp.ElicitResult{Action: cancelled}, nil
	}
	return answer, nil
}

// form is what a server asks for.
type form struct {
	server, message string
	fields          []field
}

// field is one of the things that it asks for.
type field struct {
	name     string
	required bool
	schema   *jsonschema.Schema
	fits     *jsonschema.Resolved
	options  []option
}

// option is an answer to choose: the words that are shown, and the value that is sent.
type option struct {
	words string
	value any
}

// readForm reads a question.
func readForm(server, message string, requested any) (*form, error) {
	f := &form{server: server, message: cutText(printable(message), mostQuestion)}
	data, err := json.Marshal(requested)
	var schema jsonschema.Schema
	if err == nil {
		err = json.Unmarshal(data, &schema)
	}
	if err != nil {
		return nil, fmt.Errorf("the requested schema: %w", err)
	}
	if len(schema.Properties) > mostFields {
		return nil, fmt.Errorf("the requested schema has more than %d properties", mostFields)
	}
	for name, property := range schema.Properties {
		if property == nil {
			property = &jsonschema.Schema{Type: "string"}
		}
		resolved, err := property.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("the requested schema: property %q: %w", name, err)
		}
		f.fields = append(f.fields, field{name: name, required: slices.Contains(schema.Required, name), schema: property, fits: resolved, options: optionsOf(property)})
	}
	slices.SortFunc(f.fields, func(a, b field) int { // those that must be filled in first, as the server lists them
		if a.required && b.required {
			return slices.Index(schema.Required, a.name) - slices.Index(schema.Required, b.name)
		}
		if a.required != b.required {
			return map[bool]int{true: -1, false: 1}[a.required]
		}
		return strings.Compare(a.name, b.name)
	})
	return f, nil
}

// optionsOf are the answers that a field has to choose from.
func optionsOf(s *jsonschema.Schema) (options []option) {
	if s.Type == "boolean" {
		return []option{{"yes", true}, {"no", false}}
	}
	var names []string // an older way to word them
	if raw, err := json.Marshal(s.Extra["enumNames"]); err == nil {
		_ = json.Unmarshal(raw, &names) // without names the values are shown
	}
	for i, value := range s.Enum {
		words := fmt.Sprint(value)
		if i < len(names) && names[i] != "" {
			words = names[i]
		}
		options = append(options, option{words, value})
	}
	for _, one := range s.OneOf {
		if one.Const == nil {
			continue
		}
		words := one.Title
		if words == "" {
			words = fmt.Sprint(*one.Const)
		}
		options = append(options, option{words, *one.Const})
	}
	return options
}

// fill puts the questions of a form, one after the other.
func (f *form) fill(ctx context.Context, ask func(context.Context, string) (string, error)) (*mcp.ElicitResult, error) {
	if len(f.fields) == 0 {
		f.fields = []field{{name: "confirm", required: true, schema: new(jsonschema.Schema), options: []option{{"yes", true}, {"no", false}}}}
		answer, err := f.put(ctx, &f.fields[0], ask)
		if err != nil || answer != true {
			return &mcp.ElicitResult{Action: declined}, err
		}
		return &mcp.ElicitResult{Action: accepted}, nil
	}
	content := make(map[string]any)
	for i := range f.fields {
		answer, err := f.put(ctx, &f.fields[i], ask)
		switch {
		case err != nil:
			return nil, err
		case answer != nil:
			content[f.fields[i].name] = answer
		case f.fields[i].required:
			return &mcp.ElicitResult{Action: declined}, nil
		}
	}
	return &mcp.ElicitResult{Action: accepted, Content: content}, nil
}

// put asks for one field until the answer fits. No answer is nil.
func (f *form) put(ctx context.Context, one *field, ask func(context.Context, string) (string, error)) (any, error) {
	question := f.question(one)
	for range mostPut {
		said, err := ask(ctx, question)
		if err != nil {
			return nil, err
		}
		if said = strings.TrimSpace(said); said == "" {
			return nil, nil
		}
		answer, err := one.read(said)
		if err == nil {
			return answer, nil
		}
		question = fmt.Sprintf("%q does not fit: %s\n%s", said, err, f.question(one))
	}
	return nil, nil
}

// question is what a person is shown for a field.
func (f *form) question(one *field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server %s asks: %s", f.server, f.message)
	if len(f.fields) > 1 || one.schema.Title+one.schema.Description != "" {
		b.WriteString("\n" + printable(one.name))
		if about := strings.TrimSpace(strings.Join([]string{one.schema.Title, one.schema.Description}, " ")); about != "" {
			b.WriteString(": " + cutText(printable(about), mostQuestion/10))
		}
	}
	if !one.required {
		b.WriteString("\n(you may leave it empty)")
	}
	for i, o := range one.options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, printable(o.words))
	}
	return b.String()
}

// read makes a value of what was said.
func (one *field) read(said string) (any, error) {
	if len(one.options) > 0 {
		return one.choose(said)
	}
	var value any = said
	switch one.schema.Type {
	case "integer", "number":
		number, err := strconv.ParseFloat(said, 64)
		if err != nil {
			return nil, errors.New("a number is wanted")
		}
		value = number
	case "array":
		var items []any
		for item := range strings.SplitSeq(said, ",") {
			items = append(items, strings.TrimSpace(item))
		}
		value = items
	}
	if err := one.fits.Validate(value); err != nil {
		return nil, err
	}
	return value, nil
}

// choose finds an option by its words, its value or its number.
func (one *field) choose(said string) (any, error) {
	for _, o := range one.options {
		if strings.EqualFold(o.words, said) || strings.EqualFold(fmt.Sprint(o.value), said) {
			return o.value, nil
		}
	}
	if n, err := strconv.Atoi(said); err == nil && n >= 1 && n <= len(one.options) {
		return one.options[n-1].value, nil
	}
	return nil, fmt.Errorf("choose one of the options, by its words or its number")
}

// printable is a text of a server without characters that change how a terminal shows what
// follows.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// asks is how a person is asked for a call.
func asks(call *belay.Invocation) func(ctx context.Context, question string) (string, error) {
	return func(ctx context.Context, question string) (string, error) {
		return call.Controls().Ask(ctx, question) // which says so if there is nobody
	}
}
