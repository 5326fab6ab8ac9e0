package providertest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
)

type geminiContent struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

// geminiPart is a part of a content. Exactly one of Text, InlineData, FileData, FunctionCall
// and FunctionResponse is set.
//
//nolint:tagliatelle // the service's names
type geminiPart struct {
	Text             *string         `json:"text"`
	InlineData       *geminiBlob     `json:"inlineData"`
	FileData         *geminiFile     `json:"fileData"`
	FunctionCall     *geminiCall     `json:"functionCall"`
	FunctionResponse *geminiResponse `json:"functionResponse"`
	Thought          bool            `json:"thought"`
	ThoughtSignature string          `json:"thoughtSignature"`
	PartMetadata     json.RawMessage `json:"partMetadata"`
	MediaResolution  json.RawMessage `json:"mediaResolution"`
	blob             *belay.Media    // the file in InlineData or FileData
	nested           []belay.Media   // the files in FunctionResponse
}

//nolint:tagliatelle // the service's names
type geminiBlob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

//nolint:tagliatelle // the service's names
type geminiFile struct {
	MIMEType string `json:"mimeType"`
	FileURI  string `json:"fileUri"`
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

//nolint:tagliatelle // the service's names
type geminiResponse struct {
	ID       string                     `json:"id"`
	Name     string                     `json:"name"`
	Response map[string]json.RawMessage `json:"response"`
	Parts    []struct {
		InlineData *geminiBlob `json:"inlineData"`
	} `json:"parts"`
}

// The service accepts files of geminiTypes. Inside results it accepts geminiResultTypes.
var (
	geminiTypes = []string{
		"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf", "text/plain",
		"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
		"video/mp4", "video/mpeg", "video/quicktime", "video/mov", "video/avi", "video/x-flv", "video/mpg", "video/webm", "video/wmv", "video/3gpp",
	}
	geminiResultTypes = []string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)

// checkParts decodes the parts of a content and checks each part.
func (c *geminiChecked) checkParts(at string, raws []json.RawMessage) ([]*geminiPart, error) {
	if len(raws) == 0 {
		return nil, geminiSays("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", at)
	}
	parts := make([]*geminiPart, 0, len(raws))
	for i, raw := range raws {
		at := fmt.Sprintf("%s.parts[%d]", at, i)
		var p geminiPart
		if err := geminiStrict(at, raw, &p); err != nil {
			return nil, err
		}
		data := 0
		for _, has := range []bool{p.Text != nil, p.InlineData != nil, p.FileData != nil, p.FunctionCall != nil, p.FunctionResponse != nil} {
			if has {
				data++
			}
		}
		switch {
		case data == 0:
			return nil, fmt.Errorf("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
		case data > 1:
			return nil, geminiSays("Invalid value at '%s' (oneof), oneof field 'data' is already set.", at)
		case p.Text != nil && *p.Text == "" && p.ThoughtSignature == "":
			return nil, fmt.Errorf("%s: unable to submit request because it must have a text parameter", at)
		}
		if err := c.checkData(at, &p); err != nil {
			return nil, err
		}
		parts = append(parts, &p)
	}
	return parts, nil
}

func (c *geminiChecked) checkData(at string, p *geminiPart) (err error) {
	switch {
	case p.InlineData != nil:
		p.blob, err = geminiMedia(at+".inline_data", p.InlineData, geminiTypes)
	case p.FileData != nil:
		if p.FileData.FileURI == "" || !slices.Contains(geminiTypes, p.FileData.MIMEType) {
			return fmt.Errorf("%s.file_data: unsupported file uri %q of type %q", at, p.FileData.FileURI, p.FileData.MIMEType)
		}
		p.blob = &belay.Media{MIME: p.FileData.MIMEType, URL: p.FileData.FileURI}
	case p.FunctionCall != nil:
		if !geminiName.MatchString(p.FunctionCall.Name) {
			return geminiSays("* GenerateContentRequest.%s.function_call.name: Invalid function name %q.", at, p.FunctionCall.Name)
		}
		if args := p.FunctionCall.Args; args != nil && args[0] != '{' {
			return geminiSays("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct)", at)
		}
	case p.FunctionResponse != nil:
		return c.checkResponse(at, p)
	}
	return err
}

// checkResponse checks the result of a call.
func (c *geminiChecked) checkResponse(at string, p *geminiPart) error {
	r := p.FunctionResponse
	switch {
	case r.Name == "":
		return geminiSays("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.", at)
	case r.Response == nil:
		return fmt.Errorf("* GenerateContentRequest.%s.function_response.response: is required", at)
	case len(r.Parts) > 0 && !c.newer:
		return fmt.Errorf("%s.function_response.parts: multimodal function responses are not supported by this model", at)
	}
	for i, inner := range r.Parts {
		at := fmt.Sprintf("%s.function_response.parts[%d]", at, i)
		if inner.InlineData == nil {
			return fmt.Errorf("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
		}
		media, err := geminiMedia(at, inner.InlineData, geminiResultTypes)
		if err != nil {
			return err
		}
		p.nested = append(p.nested, *media)
	}
	return nil
}

// geminiMedia decodes and checks a file.
func geminiMedia(at string, b *geminiBlob, types []string) (*belay.Media, error) {
	data, err := base64.StdEncoding.DecodeString(b.Data)
	switch {
	case err != nil:
		return nil, geminiSays("Invalid value at '%s.data' (TYPE_BYTES), Base64 decoding failed for %.20q", at, b.Data)
	case len(data) == 0:
		return nil, fmt.Errorf("%s.data: must not be empty", at)
	case !slices.Contains(types, b.MIMEType):
		return nil, geminiSays("Unsupported MIME type: %s", b.MIMEType)
	}
	return &belay.Media{MIME: b.MIMEType, Data: data}, nil
}

// geminiSide is a decoded content.
type geminiSide struct {
	role  string
	parts []*geminiPart
}

func (s *geminiSide) calls() (calls []*geminiPart) {
	return slices.DeleteFunc(slices.Clone(s.parts), func(p *geminiPart) bool { return p.FunctionCall == nil })
}

func (s *geminiSide) results() (results []*geminiPart) {
	return slices.DeleteFunc(slices.Clone(s.parts), func(p *geminiPart) bool { return p.FunctionResponse == nil })
}

// checkContents checks the conversation.
func (c *geminiChecked) checkContents(contents []json.RawMessage) error {
	if len(contents) == 0 {
		return errors.New("* GenerateContentRequest.contents: contents is not specified")
	}
	sides := make([]*geminiSide, 0, len(contents))
	turn := 0 // index of the last user content without results
	for i, raw := range contents {
		at := fmt.Sprintf("contents[%d]", i)
		var content geminiContent
		if err := geminiStrict(at, raw, &content); err != nil {
			return err
		}
		if content.Role != "user" && content.Role != "model" {
			return geminiSays("Please use a valid role: user, model.")
		}
		parts, err := c.checkParts(at, content.Parts)
		if err != nil {
			return err
		}
		side := &geminiSide{content.Role, parts}
		sides = append(sides, side)
		if side.role == "user" && len(side.results()) == 0 {
			turn = i
		}
	}
	for i, side := range sides {
		var before *geminiSide
		if i > 0 {
			before = sides[i-1]
		}
		if err := checkGeminiOrder(side, before, i == len(sides)-1); err != nil {
			return err
		}
		if err := c.checkSignatures(side, i > turn); err != nil {
			return err
		}
		c.hear(side)
	}
	return nil
}

// checkGeminiOrder checks that calls are directly after a content of the user, and results
// directly after their calls.
func checkGeminiOrder(side, before *geminiSide, last bool) error {
	calls, results := side.calls(), side.results()
	if len(calls) > 0 && (side.role != "model" || before == nil || before.role != "user") {
		return geminiSays("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	}
	var open []*geminiPart
	if before != nil {
		open = before.calls()
	}
	switch {
	case len(results) > 0 && (side.role != "user" || len(open) == 0):
		return geminiSays("Please ensure that function response turn comes immediately after a function call turn.")
	case len(results) != len(open), last && len(calls) > 0:
		return geminiSays("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	for _, r := range results {
		at := slices.IndexFunc(open, func(p *geminiPart) bool {
			return p.FunctionCall.Name == r.FunctionResponse.Name && p.FunctionCall.ID == r.FunctionResponse.ID
		})
		if at < 0 {
			return fmt.Errorf("the function response %q with id %q has no function call", r.FunctionResponse.Name, r.FunctionResponse.ID)
		}
		open = slices.Delete(open, at, at+1)
	}
	return nil
}

// geminiAnyCall are the signatures that the service accepts for calls of other models.
var geminiAnyCall = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// checkSignatures checks that each signature belongs to its part. In the current turn, the
// first call of each content must have a signature.
func (c *geminiChecked) checkSignatures(side *geminiSide, inTurn bool) error {
	said, thought, calls := "", "", 0
	for i, p := range side.parts {
		var want string
		switch {
		case p.FunctionCall != nil:
			calls++
			if c.newer && inTurn && calls == 1 && p.ThoughtSignature == "" {
				return geminiSays("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", p.FunctionCall.Name, i+1)
			}
			if want = p.ThoughtSignature; want != "" && !slices.Contains(geminiAnyCall, want) {
				want = geminiCallSignature(p.FunctionCall.Name, p.FunctionCall.Args)
			}
			said, thought = "", ""
		case p.Text != nil && p.Thought:
			thought += *p.Text
			want = signature("thought " + thought)
		case p.Text != nil:
			said += *p.Text
			if want = signature("text " + said); *p.Text == "" && isRedacted(p.ThoughtSignature) {
				want = p.ThoughtSignature
			}
			thought = ""
		}
		if p.ThoughtSignature != "" && p.ThoughtSignature != want {
			return geminiSays("Corrupted thought signature.")
		}
	}
	return nil
}

// hear adds a content to the decoded conversation. It joins consecutive contents of one
// role, and the pieces of a text.
func (c *geminiChecked) hear(side *geminiSide) {
	role := belay.RoleUser
	if side.role == "model" {
		role = belay.RoleAssistant
	}
	if n := len(c.heard); n == 0 || c.heard[n-1].Role != role {
		c.heard = append(c.heard, Heard{Role: role})
	}
	h := &c.heard[len(c.heard)-1]
	for _, p := range side.parts {
		part := p.hear()
		if n := len(h.Parts); n > 0 && p.Text != nil && part.Type == h.Parts[n-1].Type && part.Opaque == nil && (p.Thought || p.ThoughtSignature != "") {
			h.Parts[n-1].Text += part.Text
			continue
		}
		if part.Type == belay.PartText && part.Text == "" {
			continue
		}
		h.Parts = append(h.Parts, part)
	}
}

// hear translates a part into a belay.Part.
func (p *geminiPart) hear() belay.Part {
	switch {
	case p.Text != nil && p.Thought:
		return belay.Part{Type: belay.PartThinking, Text: *p.Text}
	case p.Text != nil && isRedacted(p.ThoughtSignature):
		return belay.Part{Type: belay.PartThinking, Opaque: encodeJSON(p.ThoughtSignature)}
	case p.Text != nil:
		return belay.Text(*p.Text)
	case p.blob != nil:
		return belay.Part{Type: belay.PartMedia, Media: p.blob}
	case p.FunctionCall != nil:
		c := p.FunctionCall
		if c.Args == nil {
			c.Args = json.RawMessage("{}")
		}
		return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: c.ID, Tool: c.Name, Input: c.Args}}
	}
	r := p.FunctionResponse
	result := &belay.ResultPart{Call: r.ID, Tool: r.Name}
	said, failed := r.Response["error"]
	if !failed {
		said = r.Response["output"]
	}
	if said != nil && json.Unmarshal(said, &result.Text) != nil {
		result.Text = string(said)
	}
	result.IsError, result.Media = failed, p.nested
	return belay.Part{Type: belay.PartResult, Result: result}
}

// geminiExtends returns an error if the later request does not begin with the earlier
// request. The error says where they differ.
func geminiExtends(earlier, later []byte) error {
	from, to, err := sameFields(earlier, later, "contents")
	if err != nil {
		return err
	}
	var lists [2][]string
	for i, raw := range []json.RawMessage{from, to} {
		var contents []geminiContent
		if err := json.Unmarshal(raw, &contents); err != nil {
			return fmt.Errorf("contents: %w", err)
		}
		for _, c := range contents {
			for _, p := range c.Parts {
				lists[i] = append(lists[i], c.Role+" "+string(p))
			}
		}
	}
	return begins("part", lists[0], lists[1])
}
