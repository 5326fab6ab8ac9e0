package gemini

import "encoding/json"

// The types below are the parts of the Gemini API that this package sends.

//nolint:tagliatelle // the service's names
type head struct {
	SystemInstruction *instruction      `json:"systemInstruction,omitempty"`
	Tools             []toolSet         `json:"tools,omitempty"`
	ToolConfig        *toolConfig       `json:"toolConfig,omitempty"`
	GenerationConfig  *generationConfig `json:"generationConfig,omitempty"`
}

type instruction struct {
	Parts []part `json:"parts"`
}

//nolint:tagliatelle // the service's names
type toolSet struct {
	FunctionDeclarations []declaration `json:"functionDeclarations"`
}

//nolint:tagliatelle // the service's names
type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

//nolint:tagliatelle // the service's names
type toolConfig struct {
	FunctionCalling functionCalling `json:"functionCallingConfig"`
}

//nolint:tagliatelle // the service's names
type functionCalling struct {
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
	Mode                 string   `json:"mode"`
}

//nolint:tagliatelle // the service's names
type generationConfig struct {
	MaxOutputTokens    int             `json:"maxOutputTokens,omitempty"`
	ResponseMIMEType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	Temperature        *float64        `json:"temperature,omitempty"`
	Thinking           *thinkingConfig `json:"thinkingConfig,omitempty"`
	TopP               *float64        `json:"topP,omitempty"`
}

//nolint:tagliatelle // the service's names
type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitempty"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
}

// part is a part of a message. Text is a pointer because a part with a signature may have an
// empty text.
//
//nolint:tagliatelle // the service's names
type part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *fileData         `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

// blob is data. encoding/json encodes it in base64.
//
//nolint:tagliatelle // the service's names
type blob struct {
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType"`
}

//nolint:tagliatelle // the service's names
type fileData struct {
	FileURI  string `json:"fileUri"`
	MIMEType string `json:"mimeType"`
}

// functionCall is a call, in requests and in responses.
type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// functionResponse is the result of a call.
type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Parts    []responsePart    `json:"parts,omitempty"`
	Response map[string]string `json:"response"`
}

//nolint:tagliatelle // the service's names
type responsePart struct {
	InlineData *blob `json:"inlineData"`
}
