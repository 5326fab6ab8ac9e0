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
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// mostFields is the maximum number of fields in one question of a server.
	mostFields = 20
	// mostQuestion is the maximum length of a question in characters.
	mostQuestion = 4_000
	// mostTries is how many invalid answers the user may give before put returns no
	// answer.
	mostTries = 3
	// skips is the answer that skips an optional field. An empty answer does so too, but not
	// every way to answer allows an empty answer.
	skips = "-"
)

// The answers that Belay sends to a server's question.
const (
	accepted  = "accept"
	declined  = "decline" // the user gave no answer, or there is no user
	cancelled = "cancel"  // the call ended before the user answered
)

// elicit asks the user a question of the server. The user is the one whose session called
// a tool of that server.
func (l *link) elicit(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	refuse := func(action string, why error) (*mcp.ElicitResult, error) {
		l.logger.Warn("cannot answer a question of an mcp server", "server", l.name, "answer", action, "error", l.redacted(why))
		return &mcp.ElicitResult{Action: action}, nil
	}
	if r.Params.Mode == "url" { // Belay does not announce support for this mode
		return refuse(declined, errors.New("the server asks the user to open a URL, and Belay does not support such questions"))
	}
	c, err := l.asker(ctx)
	if err != nil {
		return refuse(declined, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	f, err := readForm(l.name, r.Params.Message, r.Params.RequestedSchema)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	answer, err := f.fill(ctx, func(ctx context.Context, question string) (string, error) {
		return c.put(ctx, l.spec, question)
	})
	switch {
	case errors.Is(err, errAsked):
		return &mcp.ElicitResult{Action: cancelled}, nil
	case err != nil:
		return refuse(cancelled, err)
	}
	return answer, nil
}

// form is a server's question: a message, and the fields of the answer.
type form struct {
	server, message string
	fields          []field
}

// field is one field of a form.
type field struct {
	name     string
	required bool
	schema   *jsonschema.Schema
	fits     *jsonschema.Resolved
	options  []option
}

// option is an answer that the user can choose. The user sees words, and the server gets
// value.
type option struct {
	words string
	value any
}

// readForm makes a form of a server's question.
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
	slices.SortFunc(f.fields, func(a, b field) int { // required fields first, in the order of schema.Required
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

// optionsOf returns the options of a field.
func optionsOf(s *jsonschema.Schema) (options []option) {
	if s.Type == "boolean" {
		return []option{{"yes", true}, {"no", false}}
	}
	var names []string // older servers write the titles of options here
	if raw, err := json.Marshal(s.Extra["enumNames"]); err == nil {
		_ = json.Unmarshal(raw, &names) // on an error the user sees the values
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

// fill asks the user for the fields of a form, one after the other.
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

// put asks for one field until the answer is valid, at most mostTries times. It returns
// nil if the user gives no valid answer.
func (f *form) put(ctx context.Context, one *field, ask func(context.Context, string) (string, error)) (any, error) {
	question := f.question(one)
	for range mostTries {
		said, err := ask(ctx, question)
		if err != nil {
			return nil, err
		}
		if said = strings.TrimSpace(said); said == "" || said == skips && !one.required {
			return nil, nil
		}
		answer, err := one.read(said)
		if err == nil {
			return answer, nil
		}
		question = fmt.Sprintf("The answer %q is not valid: %s\n%s", said, err, f.question(one))
	}
	return nil, nil
}

// question returns the text that the user sees for a field.
func (f *form) question(one *field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server %s asks: %s", f.server, f.message)
	if len(f.fields) > 1 || one.schema.Title+one.schema.Description != "" {
		b.WriteString("\n" + printable(one.name))
		if about := strings.TrimSpace(one.schema.Title + " " + one.schema.Description); about != "" {
			b.WriteString(": " + cutText(printable(about), mostQuestion/10))
		}
	}
	if !one.required {
		b.WriteString("\n(optional: the answer - skips this field)")
	}
	for i, o := range one.options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, printable(o.words))
	}
	return b.String()
}

// read converts an answer to a value of the field's type.
func (one *field) read(said string) (any, error) {
	if len(one.options) > 0 {
		return one.choose(said)
	}
	var value any = said
	switch one.schema.Type {
	case "integer", "number":
		number, err := strconv.ParseFloat(said, 64)
		if err != nil {
			return nil, errors.New("the answer must be a number")
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
		return nil, err //nolint:wrapcheck // the user reads it
	}
	return value, nil
}

// choose finds an option by its text, then by its number, then by its value. Text and
// number come first because the user sees them.
func (one *field) choose(said string) (any, error) {
	for _, o := range one.options {
		if strings.EqualFold(o.words, said) {
			return o.value, nil
		}
	}
	if n, err := strconv.Atoi(said); err == nil && n >= 1 && n <= len(one.options) {
		return one.options[n-1].value, nil
	}
	for _, o := range one.options {
		if strings.EqualFold(fmt.Sprint(o.value), said) {
			return o.value, nil
		}
	}
	return nil, errors.New("choose one of the options by its text or its number")
}

// printable replaces control characters in a server's text, because a terminal would
// execute them.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
