package providertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// openAIError is an error in OpenAI's form. Both protocols have the same form.
type openAIError struct {
	status      int
	kind        string
	code, param string // may be empty
	message     string
}

func (e *openAIError) Error() string { return e.message }

// invalidAt returns the error for a malformed request. param is the path of the mistake.
func invalidAt(param, code, format string, args ...any) *openAIError {
	return &openAIError{http.StatusBadRequest, "invalid_request_error", code, param, fmt.Sprintf(format, args...)}
}

// fields returns the error as a JSON object.
func (e *openAIError) fields() map[string]any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"message": e.message, "type": e.kind, "param": orNull(e.param), "code": orNull(e.code)}
}

// refused returns the error as an answer.
func (e *openAIError) refused() *refused {
	return &refused{e.status, e.message, encodeJSON(map[string]any{"error": e.fields()}), map[string]string{"X-Request-Id": "req_of_a_test"}}
}

// openAIErrors are the service's errors by kind.
var openAIErrors = map[belay.ModelErrorKind]openAIError{
	belay.ModelRateLimited: {http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "", "Rate limit reached for requests."},
	belay.ModelOverloaded:  {http.StatusServiceUnavailable, "service_unavailable_error", "server_is_overloaded", "", "Our servers are currently overloaded. Please try again later."},
	belay.ModelServer:      {http.StatusInternalServerError, "server_error", "", "", "The server had an error while processing your request."},
	belay.ModelTooLong:     {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "", "Your input exceeds the context window of this model. Please adjust your input and try again."},
	belay.ModelInvalid:     {http.StatusBadRequest, "invalid_request_error", "model_not_found", "model", "The requested model does not exist."},
	belay.ModelAuth:        {http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "", "Incorrect API key provided."},
}

// openAIRefusal returns a refusal in the service's form.
func openAIRefusal(r *Refusal) *refused {
	e, ok := openAIErrors[r.Kind]
	if !ok {
		return nil
	}
	if r.Status != 0 && r.Status != e.status {
		e.status, e.code = r.Status, "" // an error with another status comes from a proxy
		if r.Status >= http.StatusInternalServerError {
			e.kind = "server_error"
		}
	}
	e.message = cmp.Or(r.Message, e.message)
	return e.refused()
}

// openAIModels returns the list of models.
func openAIModels(r *http.Request, key string) ([]byte, *refused) {
	err := openAIDoor(r, "/v1/models", http.MethodGet, key)
	if err != nil {
		return nil, err.refused()
	}
	model := func(id string) map[string]any {
		return map[string]any{"id": id, "object": "model", "created": 1, "owned_by": "a-test"}
	}
	return encodeJSON(map[string]any{"object": "list", "data": []any{model("model-of-a-test"), model("another-model")}}), nil
}

// openAIDoor checks the method, the path and the headers of a request, for both protocols.
func openAIDoor(r *http.Request, path, method, key string) *openAIError {
	switch {
	case r.URL.Path != path:
		return &openAIError{http.StatusNotFound, "invalid_request_error", "", "", fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}
	case r.Method != method:
		return &openAIError{http.StatusMethodNotAllowed, "invalid_request_error", "method_not_supported", "", "Not allowed to " + r.Method + " on " + path + "."}
	case r.Header.Get("Authorization") == "":
		return &openAIError{http.StatusUnauthorized, "invalid_request_error", "", "", "You didn't provide an API key."}
	case r.Header.Get("Authorization") != "Bearer "+key:
		return &openAIError{http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "", "Incorrect API key provided."}
	case method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
		return invalidAt("", "", "Invalid content type: it must be application/json.")
	}
	return nil
}

// openAIFields decodes an object and rejects unknown fields.
func openAIFields(at string, raw json.RawMessage, known ...string) (map[string]json.RawMessage, *openAIError) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		if at == "" {
			return nil, invalidAt("", "", "We could not parse the JSON body of your request.")
		}
		return nil, invalidAt(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return nil, invalidAt(below(at, name), "unknown_parameter", "Unknown parameter: '%s'.", below(at, name))
		}
	}
	return fields, nil
}

// below returns the path of a field.
func below(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

// openAIText decodes a string. If required is set, the string must not be empty.
func openAIText(at string, raw json.RawMessage, required bool) (string, *openAIError) {
	if raw == nil || string(raw) == "null" {
		if required {
			return "", invalidAt(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
		}
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", invalidAt(at, "invalid_type", "Invalid type for '%s': expected a string.", at)
	}
	if required && text == "" {
		return "", invalidAt(at, "empty_string", "Invalid '%s': empty string. Expected a string with minimum length 1.", at)
	}
	return text, nil
}

// openAIShort decodes a string that must not be empty and must not be longer than most.
func openAIShort(at string, raw json.RawMessage, most int) (string, *openAIError) {
	text, err := openAIText(at, raw, true)
	if n := utf8.RuneCountInString(text); err == nil && n > most {
		err = invalidAt(at, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, most, n)
	}
	return text, err
}

// openAIWord checks an optional string. If it is present, it must be one of the words.
func openAIWord(at string, raw json.RawMessage, words ...string) *openAIError {
	text, err := openAIText(at, raw, false)
	if err == nil && raw != nil && !slices.Contains(words, text) {
		err = invalidAt(at, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", text, quoted(words))
	}
	return err
}

func openAIList(at string, raw json.RawMessage) ([]json.RawMessage, *openAIError) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, invalidAt(at, "invalid_type", "Invalid type for '%s': expected an array.", at)
	}
	return list, nil
}

var openAIName = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)

func checkOpenAIName(at string, raw json.RawMessage) (string, *openAIError) {
	name, err := openAIShort(at, raw, 64)
	if err == nil && !openAIName.MatchString(name) {
		err = invalidAt(at, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	}
	return name, err
}

// checkArguments checks the input of a call in a message of the model.
func checkArguments(at string, raw json.RawMessage) (json.RawMessage, *openAIError) {
	text, err := openAIText(at, raw, true)
	if err == nil && json.Unmarshal([]byte(text), &map[string]json.RawMessage{}) != nil {
		err = invalidAt(at, "invalid_value", "Invalid '%s': expected a JSON object in a string.", at)
	}
	return json.RawMessage(text), err
}

// checkOpenAISchema checks the schema of a tool.
func checkOpenAISchema(at, tool string, raw json.RawMessage, strict bool) *openAIError {
	invalid := func(format string, args ...any) *openAIError {
		return invalidAt(at, "invalid_function_parameters", "Invalid schema for function '%s': %s", tool, fmt.Sprintf(format, args...))
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || top == nil {
		return invalid("%s is not an object.", raw)
	}
	if kind := string(top["type"]); kind != `"object"` {
		return invalid("schema must be a JSON Schema of 'type: \"object\"', got 'type: %s'.", cmp.Or(kind, "null"))
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "enum", "const", "not"} {
		if top[keyword] != nil {
			return invalid("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level.")
		}
	}
	if top["properties"] == nil {
		return invalid("In context=(), object schema missing properties.")
	}
	if json.Unmarshal(top["properties"], &map[string]json.RawMessage{}) != nil {
		return invalid("In context=('properties'), %s is not of type 'object'.", top["properties"])
	}
	if strict && string(top["additionalProperties"]) != "false" {
		return invalid("In context=(), 'additionalProperties' is required to be supplied and to be false.")
	}
	var schema any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return invalid("%v", err)
	}
	if where, ok := listWithoutItems(schema, nil); ok {
		return invalid("In context=(%s), array schema missing items.", strings.Join(where, ", "))
	}
	return nil
}

// listWithoutItems finds an array schema without items, and returns its path.
func listWithoutItems(schema any, at []string) ([]string, bool) {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil, false
	}
	if s["type"] == "array" && s["items"] == nil {
		return at, true
	}
	for _, keyword := range []string{"items", "additionalProperties", "not"} {
		if where, ok := listWithoutItems(s[keyword], append(slices.Clone(at), "'"+keyword+"'")); ok {
			return where, true
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[keyword].([]any) // nil if the value is not a list
		for i, inner := range list {
			if where, ok := listWithoutItems(inner, append(slices.Clone(at), "'"+keyword+"'", fmt.Sprintf("'%d'", i))); ok {
				return where, true
			}
		}
	}
	for _, keyword := range []string{"properties", "$defs", "definitions"} {
		named, _ := s[keyword].(map[string]any) // nil if the value is not an object
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if where, ok := listWithoutItems(named[name], append(slices.Clone(at), "'"+keyword+"'", "'"+name+"'")); ok {
				return where, true
			}
		}
	}
	return nil, false
}

// checkDataURL decodes a URL of an image or a file, which may be a data URL.
func checkDataURL(at, address string, types []string) (*belay.Media, *openAIError) {
	rest, isData := strings.CutPrefix(address, "data:")
	if !isData {
		if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
			return nil, invalidAt(at, "invalid_value", "Invalid '%s'. Expected a valid URL, but got a value with an invalid format.", at)
		}
		return &belay.Media{URL: address}, nil
	}
	kind, data, ok := strings.Cut(rest, ";base64,")
	if !ok || !slices.Contains(types, kind) {
		return nil, invalidAt(at, "invalid_image_format", "You uploaded an unsupported file: '%s' holds %q, and must hold one of %s.", at, kind, quoted(types))
	}
	var content []byte
	if json.Unmarshal([]byte(`"`+data+`"`), &content) != nil || len(content) == 0 {
		return nil, invalidAt(at, "invalid_base64", "Invalid '%s': it must be non-empty base64.", at)
	}
	return &belay.Media{MIME: kind, Data: content}, nil
}

// imageTypes and fileTypes are the types that the service accepts.
var (
	imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	fileTypes  = []string{"application/pdf"}
)

// extendsOpenAI compares two requests field by field. It calls extends to compare the
// conversations in the field list.
func extendsOpenAI(earlier, later []byte, list string, extends func(from, to []json.RawMessage) error) error {
	from, to, err := sameFields(earlier, later, list)
	if err != nil {
		return err
	}
	var old, extended []json.RawMessage
	if json.Unmarshal(from, &old) != nil || json.Unmarshal(to, &extended) != nil {
		return fmt.Errorf("%s is not a list", list)
	}
	return extends(old, extended)
}
