package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/strictjson"
	"github.com/belay-run/belay/internal/typeschema"
)

// An operation is one thing that the API can do. The table of operations is the only source
// of the routes, the decoders, the checks of roles, the OpenAPI document and the reference.
type operation struct {
	id      string
	method  string
	path    string
	tag     string
	summary string
	role    Role
	// unlimited operations show things of all tenants, such as the workers. A token that is
	// limited to labels gets 404.
	unlimited bool
	files     bool // the body may have files, so it may be larger
	media     bool // the response is an image or a file
	status    int  // of the response, if there is no error
	in        reflect.Type
	out       reflect.Type // nil if there is no body
	events    []string     // the kinds of events of a stream, for the documentation; nil: no stream
	input     *typeschema.Type
	// exactly one of these is set
	call   func(ctx context.Context, s *Server, q *request, input []byte) (any, error)
	stream func(ctx context.Context, s *Server, q *request, input []byte) error
}

// request is a request with its token.
type request struct {
	op    *operation
	token *Token
	w     http.ResponseWriter
	r     *http.Request
	key   belay.SubmitKey // of a request that starts a turn: see repeated
	// follows is the message that a turn must follow directly: see belay.QueuedTurn.
	follows int64
}

// action makes an operation from a function. The fields of In come from the request. The tag
// `in:"path"` or `in:"query"` says where a field is. All other fields are in the JSON body.
func action[In, Out any](o operation, do func(context.Context, *Server, *request, *In) (Out, error)) operation {
	o.describe(reflect.TypeFor[In]())
	o.out = reflect.TypeFor[Out]()
	if o.out == reflect.TypeFor[none]() {
		o.out = nil
	}
	o.call = func(ctx context.Context, s *Server, q *request, input []byte) (any, error) {
		var in In
		if err := o.input.Decode(input, &in); err != nil {
			return nil, wrongInput(err.Error())
		}
		return do(ctx, s, q, &in)
	}
	return o
}

// stream makes an operation that answers with server-sent events.
func stream[In any](o operation, events []string, do func(context.Context, *Server, *request, *In) error) operation {
	o.describe(reflect.TypeFor[In]())
	o.events = events
	o.stream = func(ctx context.Context, s *Server, q *request, input []byte) error {
		var in In
		if err := o.input.Decode(input, &in); err != nil {
			return wrongInput(err.Error())
		}
		return do(ctx, s, q, &in)
	}
	return o
}

// writing makes an operation that writes its own response: JSON of the type Out, or
// server-sent events.
func writing[In, Out any](o operation, do func(context.Context, *Server, *request, *In) (*Out, error)) operation {
	o = stream(o, nil, func(ctx context.Context, s *Server, q *request, in *In) error {
		out, err := do(ctx, s, q, in)
		if out != nil && err == nil {
			_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(s.timeouts.body)) // it may have waited for a turn
			s.sendJSON(q.w, o.status, out)
		}
		return err
	})
	o.out = reflect.TypeFor[Out]()
	return o
}

// none is the result of an operation without a body.
type none struct{}

// describe makes the schema of the input. A wrong type is a mistake in the table, which every
// test finds.
func (o *operation) describe(in reflect.Type) {
	o.in = in
	described, err := typeOf(in)
	if err != nil {
		panic(fmt.Sprintf("serve: operation %s: %v", o.id, err))
	}
	o.input = described
	if o.status == 0 {
		o.status = http.StatusOK
	}
}

// types caches schemas, because making the schema of a type takes up to a millisecond.
var types sync.Map // of reflect.Type to *typeschema.Type

// typeOf returns the schema of a type.
func typeOf(t reflect.Type) (*typeschema.Type, error) {
	if known, ok := types.Load(t); ok {
		return known.(*typeschema.Type), nil //nolint:forcetypeassert // types holds nothing else
	}
	described, err := typeschema.For(t)
	if err == nil {
		types.Store(t, described)
	}
	return described, err
}

// A place says where a field of the input is.
type place struct {
	name string
	in   string // path, query or body
	kind reflect.Type
}

// places returns the fields of the input, in order.
func (o *operation) places() []place {
	var all []place
	for f := range o.in.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := f.Tag.Get("in")
		switch {
		case name == "-":
			continue // a header
		case at == "":
			at = "body"
		}
		all = append(all, place{name, at, f.Type})
	}
	return all
}

// takesBody reports whether the operation has a JSON body.
func (o *operation) takesBody() bool {
	return slices.ContainsFunc(o.places(), func(p place) bool { return p.in == "body" })
}

// decode collects the fields from the path, the query and the body into one JSON object and
// checks it. It rejects everything that the operation does not know.
func (o *operation) decode(r *http.Request, path func(name string) string, limit int64) ([]byte, error) {
	input := make(map[string]json.RawMessage)
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem(http.StatusBadRequest, codes.RequestInvalid, "the query of the address cannot be read: %v", err)
	}
	if err := o.decodeBody(r, limit, input); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range o.places() {
		switch p.in {
		case "path":
			if input[p.name], err = queryJSON(p, []string{path(p.name)}); err != nil {
				return nil, err
			}
		case "query":
			names = append(names, p.name)
			values, given := query[p.name]
			if !given {
				continue
			}
			delete(query, p.name)
			if input[p.name], err = queryJSON(p, values); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		return nil, invalid("/"+name, "there is no query parameter %q%s", name, near.Hint(name, names))
	}
	data, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return o.check(data)
}

// readBody reads the body of a request.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, problem(http.StatusRequestEntityTooLarge, codes.RequestTooLarge, "the body has more than %d bytes", limit)
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, codes.RequestInvalid, "the body cannot be read to its end")
	}
	return body, nil
}

// checkJSON accepts a body that all decoders of JSON read alike. What is checked could otherwise differ from what is done.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return problem(http.StatusBadRequest, codes.RequestInvalid, "the body is not UTF-8")
	}
	if !json.Valid(body) {
		return problem(http.StatusBadRequest, codes.RequestInvalid, "the body is not JSON")
	}
	if err := strictjson.CheckKeys(body); err != nil {
		return problem(http.StatusBadRequest, codes.RequestInvalid, "the body is ambiguous: %v", err)
	}
	return nil
}

// decodeBody reads the JSON object in the body.
func (o *operation) decodeBody(r *http.Request, limit int64, input map[string]json.RawMessage) error {
	body, err := readBody(r, limit)
	if err != nil {
		return err
	}
	if !o.takesBody() {
		if len(bytes.TrimSpace(body)) > 0 {
			return problem(http.StatusBadRequest, codes.RequestInvalid, "this operation takes no body")
		}
		return nil
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return problem(http.StatusUnsupportedMediaType, codes.RequestInvalid, "the Content-Type is %q: send application/json", kind)
		}
	} else if len(body) > 0 {
		return problem(http.StatusUnsupportedMediaType, codes.RequestInvalid, "there is no Content-Type: send application/json")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil // the fields that are required are reported as missing
	}
	if err := checkJSON(body); err != nil {
		return err
	}
	if json.Unmarshal(body, &input) != nil || input == nil {
		return problem(http.StatusBadRequest, codes.RequestInvalid, "the body must be a JSON object")
	}
	for _, p := range o.places() {
		if _, given := input[p.name]; given && p.in != "body" {
			return invalid("/"+p.name, "%s belongs into the %s of the address, not into the body", p.name, p.in)
		}
	}
	return nil
}

// check checks an input against the schema of the operation.
func (o *operation) check(input []byte) ([]byte, error) {
	if o.input.Checker.Accepts(input) {
		if faults := o.input.Rejected(input); len(faults) > 0 {
			return nil, wrongInput(faults[0])
		}
		return input, nil
	}
	var value any
	if err := json.Unmarshal(input, &value); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	o.input.DropNulls(value)
	if err := o.input.Resolved.Validate(value); err == nil {
		if faults := o.input.Rejected(input); len(faults) > 0 {
			return nil, wrongInput(faults[0])
		}
		return input, nil
	}
	if faults := strictjson.Violations(o.input.Schema, value); len(faults) > 0 {
		return nil, wrongInput(faults[0])
	}
	return nil, invalid("", "the request does not match the schema of the operation: see /v1/docs")
}

// wrongInput makes a problem from a fault such as "/limit: want an integer, got …".
func wrongInput(fault string) *Problem {
	field, why, ok := strings.Cut(fault, ": ")
	if !ok || !strings.HasPrefix(field, "/") {
		return invalid("", "%s", fault)
	}
	return invalid(field, "%s: %s", strings.TrimPrefix(field, "/"), why)
}

// textJSON returns a text as JSON.
func textJSON(field, text string) (json.RawMessage, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, invalid(field, "the value is not UTF-8 text")
	}
	data, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return data, nil
}

// queryJSON returns the values of a parameter in the path or the query as JSON of its type. A value that does
// not fit stays a text, so that the schema rejects it.
func queryJSON(p place, values []string) (json.RawMessage, error) {
	field := "/" + p.name
	for _, v := range values {
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return nil, invalid(field, "the value is not UTF-8 text")
		}
	}
	switch p.kind.Kind() {
	case reflect.Slice:
		data, err := json.Marshal(values)
		if err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		return data, nil
	case reflect.Map:
		pairs := make(map[string]string, len(values))
		for _, v := range values {
			name, value, ok := strings.Cut(v, "=")
			if !ok || name == "" {
				return nil, invalid(field, "%s: %q is not NAME=VALUE", p.name, v)
			}
			pairs[name] = value
		}
		data, err := json.Marshal(pairs)
		if err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		return data, nil
	default:
		if len(values) != 1 {
			return nil, invalid(field, "%s is given %d times: give it once", p.name, len(values))
		}
		switch p.kind.Kind() {
		case reflect.Int, reflect.Int64:
			if n, err := strconv.ParseInt(values[0], 10, 64); err == nil {
				return json.RawMessage(strconv.FormatInt(n, 10)), nil
			}
		case reflect.Bool:
			if b, err := strconv.ParseBool(values[0]); err == nil {
				return json.RawMessage(strconv.FormatBool(b)), nil
			}
		default:
		}
		return textJSON(field, values[0])
	}
}
