package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// geminiRequest is the body of a request. Fields of type json.RawMessage may be present, but
// most are not checked.
//
//nolint:tagliatelle // the service's names
type geminiRequest struct {
	Contents          []json.RawMessage `json:"contents"`
	SystemInstruction *geminiContent    `json:"systemInstruction"`
	Tools             []geminiTool      `json:"tools"`
	GenerationConfig  *geminiGeneration `json:"generationConfig"`
	ToolConfig        json.RawMessage   `json:"toolConfig"`
	SafetySettings    json.RawMessage   `json:"safetySettings"`
	CachedContent     json.RawMessage   `json:"cachedContent"`
	Tier              json.RawMessage   `json:"serviceTier"`
	Labels            json.RawMessage   `json:"labels"`
}

//nolint:tagliatelle // the service's names
type geminiTool struct {
	FunctionDeclarations []geminiDeclaration `json:"functionDeclarations"`
	GoogleSearch         json.RawMessage     `json:"googleSearch"`
	CodeExecution        json.RawMessage     `json:"codeExecution"`
	URLContext           json.RawMessage     `json:"urlContext"`
}

//nolint:tagliatelle // the service's names
type geminiDeclaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description"`
	Parameters           json.RawMessage `json:"parameters"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
	Response             json.RawMessage `json:"response"`
	ResponseJSONSchema   json.RawMessage `json:"responseJsonSchema"`
}

//nolint:tagliatelle // the service's names
type geminiGeneration struct {
	MaxOutputTokens    *int            `json:"maxOutputTokens"`
	ThinkingConfig     *geminiThinking `json:"thinkingConfig"`
	Temperature        json.RawMessage `json:"temperature"`
	TopP               json.RawMessage `json:"topP"`
	TopK               json.RawMessage `json:"topK"`
	Seed               json.RawMessage `json:"seed"`
	StopSequences      json.RawMessage `json:"stopSequences"`
	CandidateCount     json.RawMessage `json:"candidateCount"`
	ResponseMIMEType   json.RawMessage `json:"responseMimeType"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
}

//nolint:tagliatelle // the service's names
type geminiThinking struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	ThinkingBudget  *int   `json:"thinkingBudget"`
	ThinkingLevel   string `json:"thinkingLevel"`
}

// geminiChecked is the decoded request. The checks fill it in.
type geminiChecked struct {
	newer     bool // the model is Gemini 3 or later
	system    string
	heard     []Heard
	tools     []belay.ToolDeclaration
	maxTokens int
}

// geminiName matches the valid names of tools.
var geminiName = lazyregexp.New(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// checkGemini decodes and checks the body of a request.
func checkGemini(model string, body []byte) (*geminiChecked, error) {
	var r geminiRequest
	if err := geminiStrict("", body, &r); err != nil {
		return nil, err
	}
	c := &geminiChecked{newer: !strings.HasPrefix(model, "gemini-1.") && !strings.HasPrefix(model, "gemini-2.")}
	if s := r.SystemInstruction; s != nil {
		parts, err := c.checkParts("systemInstruction", s.Parts)
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, p := range parts {
			if p.Text == nil {
				return nil, errors.New("system_instruction: a system prompt is text")
			}
			texts = append(texts, *p.Text)
		}
		c.system = strings.Join(texts, "\n")
	}
	for _, check := range []func() error{
		func() error { return c.checkGeneration(r.GenerationConfig) },
		func() error { return c.checkTools(r.Tools) },
		func() error { return c.checkContents(r.Contents) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// geminiStrict decodes JSON and rejects unknown fields. at is the path in the request, for
// errors.
func geminiStrict(at string, data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("there is text after the end of the JSON value")
	}
	if err == nil {
		return nil
	}
	if at != "" {
		at = fmt.Sprintf(" at '%s'", at)
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if field, ok := strings.CutPrefix(message, "unknown field "); ok {
		return geminiSays("Invalid JSON payload received. Unknown name %s%s: Cannot find field.", field, at)
	}
	return geminiSays("Invalid JSON payload received.%s: %s", at, message)
}

// checkGeneration checks the token limit and the thinking settings.
func (c *geminiChecked) checkGeneration(g *geminiGeneration) error {
	if g == nil {
		return nil
	}
	if g.MaxOutputTokens != nil {
		if c.maxTokens = *g.MaxOutputTokens; c.maxTokens < 1 {
			return errors.New("max_output_tokens must be positive")
		}
	}
	if t := g.ThinkingConfig; t != nil {
		switch {
		case t.ThinkingBudget != nil && t.ThinkingLevel != "":
			return geminiSays("You can only set only one of thinking budget and thinking level.")
		case t.ThinkingBudget != nil && *t.ThinkingBudget < -1:
			return errors.New("the thinking budget is out of range")
		case t.ThinkingLevel != "" && !slices.Contains([]string{"minimal", "low", "medium", "high"}, strings.ToLower(t.ThinkingLevel)):
			return geminiSays("Invalid value at 'generation_config.thinking_config.thinking_level': %q", t.ThinkingLevel)
		}
	}
	return nil
}

func (c *geminiChecked) checkTools(tools []geminiTool) error {
	seen := map[string]bool{}
	for i, tool := range tools {
		for j, d := range tool.FunctionDeclarations {
			at := fmt.Sprintf("* GenerateContentRequest.tools[%d].function_declarations[%d]", i, j)
			schema := d.ParametersJSONSchema
			switch {
			case !geminiName.MatchString(d.Name):
				return geminiSays("%s.name: [FIELD_INVALID] Invalid function name %q. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.", at, d.Name)
			case seen[d.Name]:
				return geminiSays("Duplicate function declaration found: %s", d.Name)
			case d.Parameters != nil:
				return fmt.Errorf("%s.parameters: this server accepts only parameters_json_schema", at)
			case schema != nil:
				if err := checkGeminiSchema(schema); err != nil {
					return fmt.Errorf("%s.parameters_json_schema: %w", at, err)
				}
			}
			seen[d.Name] = true
			c.tools = append(c.tools, belay.ToolDeclaration{Name: d.Name, Description: d.Description, InputSchema: schema})
		}
	}
	return nil
}

// checkGeminiSchema checks the schema of a tool's input.
func checkGeminiSchema(raw json.RawMessage) error {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil || root == nil {
		return errors.New("must be an object")
	}
	if root["type"] != "object" {
		return errors.New("the schema must describe an object")
	}
	return checkGeminiNode(root, root, "")
}

// checkGeminiNode checks a nested schema, or a list of schemas.
func checkGeminiNode(node any, root map[string]any, at string) error {
	switch node := node.(type) {
	case bool:
		if !strings.HasSuffix(at, "additionalProperties") {
			return fmt.Errorf("schema at %s must be an object", at)
		}
		return nil
	case []any:
		for i, inner := range node {
			if err := checkGeminiNode(inner, root, fmt.Sprintf("%s.%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := checkGeminiReference(node, root, at); err != nil {
			return err
		}
		return checkGeminiKeywords(node, root, at)
	default:
		return fmt.Errorf("schema at %s must be an object", at)
	}
}

// checkGeminiReference checks that the target of a reference exists. All keywords beside the
// reference must begin with $.
func checkGeminiReference(node, root map[string]any, at string) error {
	reference, ok := node["$ref"].(string)
	if !ok {
		return nil
	}
	for key := range node {
		if !strings.HasPrefix(key, "$") {
			return fmt.Errorf("schema at %s can only contain properties starting with '$' when $ref is present", at)
		}
	}
	name, local := strings.CutPrefix(reference, "#/$defs/")
	defined, _ := root["$defs"].(map[string]any)
	if _, ok := defined[name]; !local || !ok {
		return fmt.Errorf("reference to undefined schema at %s", at)
	}
	return nil
}

// checkGeminiKeywords checks the nested schemas of a schema.
func checkGeminiKeywords(node, root map[string]any, at string) error {
	for _, key := range slices.Sorted(maps.Keys(node)) {
		at := strings.TrimPrefix(at+"."+key, ".")
		switch key {
		case "properties", "patternProperties", "$defs":
			named, _ := node[key].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				if err := checkGeminiNode(named[name], root, at+"."+name); err != nil {
					return err
				}
			}
		case "items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems", "not":
			if err := checkGeminiNode(node[key], root, at); err != nil {
				return err
			}
		}
	}
	return nil
}
