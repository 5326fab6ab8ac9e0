package providertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// responsesFields are the fields that a request may have. Not all of them are checked.
var responsesFields = []string{
	"model", "input", "instructions", "tools", "max_output_tokens", "reasoning", "include", "store", "stream",
	"background", "conversation", "max_tool_calls", "metadata", "moderation", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key",
	"prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier", "stream_options", "temperature", "text", "tool_choice",
	"top_logprobs", "top_p", "truncation", "user", "context_management",
}

// responsesChecked is the decoded request. The checks fill it in.
type responsesChecked struct {
	request *Request
	store   bool
	calls   map[string]string // the tool of each call, by the call's id
	open    []string          // ids of calls without an output
	ids     map[string]bool
	thought string // the id of thinking that needs an item after it
}

// checkResponses decodes and checks a request. It reports whether to stream the answer.
func checkResponses(request *Request) (stream bool, refused *openAIError) {
	fields, err := openAIFields("", request.Body, responsesFields...)
	if err != nil {
		return false, err
	}
	c := &responsesChecked{request: request, store: string(fields["store"]) != "false", calls: map[string]string{}, ids: map[string]bool{}}
	for _, check := range []func(map[string]json.RawMessage) *openAIError{c.checkSettings, c.checkTools, c.checkInput} {
		if err := check(fields); err != nil {
			return false, err
		}
	}
	return string(fields["stream"]) == "true", nil
}

// checkSettings checks everything except tools and input.
func (c *responsesChecked) checkSettings(fields map[string]json.RawMessage) *openAIError {
	if _, err := openAIText("model", fields["model"], true); err != nil {
		return err
	}
	var err *openAIError
	if c.request.System, err = openAIText("instructions", fields["instructions"], false); err != nil {
		return err
	}
	if raw := fields["max_output_tokens"]; raw != nil {
		if json.Unmarshal(raw, &c.request.MaxTokens) != nil || c.request.MaxTokens < 16 {
			return invalidAt("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %s instead.", raw)
		}
	}
	if raw := fields["reasoning"]; raw != nil {
		reasoning, err := openAIFields("reasoning", raw, "effort", "summary", "generate_summary")
		if err != nil {
			return err
		}
		if err := openAIWord("reasoning.effort", reasoning["effort"], "none", "minimal", "low", "medium", "high", "xhigh", "max"); err != nil {
			return err
		}
		if err := openAIWord("reasoning.summary", reasoning["summary"], "auto", "concise", "detailed"); err != nil {
			return err
		}
	}
	if raw := fields["include"]; raw != nil {
		list, err := openAIList("include", raw)
		if err != nil {
			return err
		}
		for i, word := range list {
			if err := openAIWord(fmt.Sprintf("include[%d]", i), word, "reasoning.encrypted_content", "message.output_text.logprobs", "message.input_image.image_url"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *responsesChecked) checkTools(fields map[string]json.RawMessage) *openAIError {
	if fields["tools"] == nil {
		return nil
	}
	list, err := openAIList("tools", fields["tools"])
	if err != nil {
		return err
	}
	for i, raw := range list {
		at := fmt.Sprintf("tools[%d]", i)
		tool, err := openAIFields(at, raw, "type", "name", "description", "parameters", "strict")
		if err != nil {
			return err
		}
		if err := openAIWord(at+".type", tool["type"], "function"); err != nil {
			return err
		}
		// If "strict" is missing, the service uses strict mode.
		if err := hearTool(c.request, at, tool, string(tool["strict"]) != "false", 1<<20); err != nil {
			return err
		}
	}
	return nil
}

// hearTool checks a tool and adds it to the decoded request.
func hearTool(request *Request, at string, tool map[string]json.RawMessage, strict bool, mostDescription int) *openAIError {
	name, err := checkOpenAIName(at+".name", tool["name"])
	if err != nil {
		return err
	}
	if slices.ContainsFunc(request.Tools, func(t belay.ToolDeclaration) bool { return t.Name == name }) {
		return invalidAt(at+".name", "invalid_value", "Invalid '%s.name': the name %q is used twice.", at, name)
	}
	var description string
	if raw := tool["description"]; raw != nil {
		if description, err = openAIShort(at+".description", raw, mostDescription); err != nil {
			return err
		}
	}
	if err := checkOpenAISchema(at+".parameters", name, tool["parameters"], strict); err != nil {
		return err
	}
	request.Tools = append(request.Tools, belay.ToolDeclaration{Name: name, Description: description, InputSchema: tool["parameters"]})
	return nil
}

// checkInput checks the conversation.
func (c *responsesChecked) checkInput(fields map[string]json.RawMessage) *openAIError {
	raw := fields["input"]
	if raw == nil {
		return invalidAt("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	}
	if text, err := openAIText("input", raw, true); err == nil {
		c.hear(belay.RoleUser, belay.Text(text))
		return nil
	}
	list, err := openAIList("input", raw)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return invalidAt("input", "empty_array", "Invalid 'input': empty array. Expected an array with minimum length 1.")
	}
	for i, raw := range list {
		if err := c.checkItem(fmt.Sprintf("input[%d]", i), raw); err != nil {
			return err
		}
	}
	if c.thought != "" {
		return unfollowed(c.thought)
	}
	if len(c.open) > 0 {
		return invalidAt("input", "", "No tool output found for function call %s.", c.open[0])
	}
	return nil
}

func unfollowed(id string) *openAIError {
	return invalidAt("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", id)
}

// hear adds a part to the decoded conversation.
func (c *responsesChecked) hear(role belay.Role, part belay.Part) {
	if n := len(c.request.Messages); n > 0 && c.request.Messages[n-1].Role == role {
		c.request.Messages[n-1].Parts = append(c.request.Messages[n-1].Parts, part)
		return
	}
	c.request.Messages = append(c.request.Messages, Heard{role, []belay.Part{part}})
}

func (c *responsesChecked) checkItem(at string, raw json.RawMessage) *openAIError {
	var item struct {
		Type string `json:"type"`
		Role string `json:"role"`
	}
	if json.Unmarshal(raw, &item) != nil {
		return invalidAt(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	if item.Type == "" && item.Role != "" {
		item.Type = "message"
	}
	spoken := item.Type == "function_call" || item.Type == "message" && item.Role == "assistant"
	if c.thought != "" && !spoken && item.Type != "reasoning" {
		return unfollowed(c.thought)
	}
	if spoken {
		c.thought = ""
	}
	switch item.Type {
	case "message":
		return c.checkMessage(at, raw)
	case "reasoning":
		return c.checkReasoning(at, raw)
	case "function_call":
		return c.checkCall(at, raw)
	case "function_call_output":
		return c.checkOutput(at, raw)
	default:
		return invalidAt(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'message', 'reasoning', 'function_call', 'function_call_output' and others.", item.Type)
	}
}

func (c *responsesChecked) checkMessage(at string, raw json.RawMessage) *openAIError {
	fields, err := openAIFields(at, raw, "type", "role", "content", "id", "status", "phase")
	if err != nil {
		return err
	}
	if err := openAIWord(at+".role", fields["role"], "user", "assistant", "system", "developer"); err != nil {
		return err
	}
	role := belay.RoleUser
	if string(fields["role"]) == `"assistant"` {
		role = belay.RoleAssistant
	} else if fields["phase"] != nil {
		return invalidAt(at+".phase", "unknown_parameter", "Unknown parameter: '%s.phase'.", at)
	}
	if err := openAIWord(at+".phase", fields["phase"], "commentary", "final_answer"); err != nil {
		return err
	}
	if text, err := openAIText(at+".content", fields["content"], true); err == nil {
		c.hear(role, belay.Text(text))
		return nil
	}
	list, err := openAIList(at+".content", fields["content"])
	if err != nil {
		return err
	}
	for i, raw := range list {
		part, err := checkResponsesContent(fmt.Sprintf("%s.content[%d]", at, i), raw, role)
		if err != nil {
			return err
		}
		c.hear(role, part)
	}
	return nil
}

// checkResponsesContent checks a part of a message or of an output.
func checkResponsesContent(at string, raw json.RawMessage, role belay.Role) (belay.Part, *openAIError) {
	fields, err := openAIFields(at, raw, "type", "text", "refusal", "annotations", "logprobs", "image_url", "detail", "file_id", "filename", "file_data", "file_url")
	if err != nil {
		return belay.Part{}, err
	}
	types := []string{"input_text", "input_image", "input_file"}
	if role == belay.RoleAssistant {
		types = []string{"output_text", "refusal"}
	}
	if fields["type"] == nil {
		return belay.Part{}, invalidAt(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
	}
	if err := openAIWord(at+".type", fields["type"], types...); err != nil {
		return belay.Part{}, err
	}
	switch strings.Trim(string(fields["type"]), `"`) {
	case "input_text", "output_text":
		text, err := openAIText(at+".text", fields["text"], true)
		return belay.Text(text), err
	case "refusal":
		text, err := openAIText(at+".refusal", fields["refusal"], true)
		return belay.Text(text), err
	case "input_image":
		if err := openAIWord(at+".detail", fields["detail"], "auto", "low", "high", "original"); err != nil {
			return belay.Part{}, err
		}
		return openAIMedia(at+".image_url", fields["image_url"], "", imageTypes)
	default:
		name, err := openAIText(at+".filename", fields["filename"], fields["file_data"] != nil)
		if err != nil {
			return belay.Part{}, err
		}
		if fields["file_data"] == nil {
			return openAIMedia(at+".file_url", fields["file_url"], name, fileTypes)
		}
		return openAIMedia(at+".file_data", fields["file_data"], name, fileTypes)
	}
}

// openAIMedia decodes a URL of an image or a file, which may be a data URL.
func openAIMedia(at string, raw json.RawMessage, name string, types []string) (belay.Part, *openAIError) {
	address, err := openAIText(at, raw, true)
	if err != nil {
		return belay.Part{}, err
	}
	media, err := checkDataURL(at, address, types)
	if err != nil {
		return belay.Part{}, err
	}
	media.Name = name
	return belay.Part{Type: belay.PartMedia, Media: media}, nil
}

// checkReasoning checks thinking that the model wrote earlier.
func (c *responsesChecked) checkReasoning(at string, raw json.RawMessage) *openAIError {
	fields, err := openAIFields(at, raw, "type", "id", "summary", "encrypted_content", "content", "status")
	if err != nil {
		return err
	}
	id, err := openAIText(at+".id", fields["id"], true)
	if err != nil {
		return err
	}
	if c.ids[id] {
		return invalidAt(at, "", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
	}
	c.ids[id], c.thought = true, id
	if fields["summary"] == nil {
		return invalidAt(at+".summary", "missing_required_parameter", "Missing required parameter: '%s.summary'.", at)
	}
	if list := fields["content"]; list != nil && string(list) != "[]" && string(list) != "null" {
		return invalidAt(at+".content", "array_above_max_length", "Invalid '%s.content': array too long. Expected an array with maximum length 0.", at)
	}
	encrypted, err := openAIText(at+".encrypted_content", fields["encrypted_content"], false)
	if err != nil {
		return err
	}
	if encrypted == "" && !c.store {
		return invalidAt("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)
	}
	var summary []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(fields["summary"], &summary) != nil {
		return invalidAt(at+".summary", "invalid_type", "Invalid type for '%s.summary': expected an array of objects.", at)
	}
	var texts []string
	for i, s := range summary {
		if s.Type != "summary_text" {
			return invalidAt(at, "invalid_value", "Invalid value: '%s.summary[%d].type' must be 'summary_text'.", at, i)
		}
		texts = append(texts, s.Text)
	}
	whole := strings.Join(texts, "")
	if len(texts) == 0 && isRedacted(encrypted) {
		c.hear(belay.RoleAssistant, belay.Part{Type: belay.PartThinking, Opaque: encodeJSON(encrypted)})
		return nil
	}
	if encrypted != signature(whole) {
		return invalidAt(at, "invalid_encrypted_content", "The encrypted content of item %s could not be verified: it is another's, or the item was changed.", id)
	}
	c.hear(belay.RoleAssistant, thought(whole))
	return nil
}

// checkCall checks a call that the model made earlier.
func (c *responsesChecked) checkCall(at string, raw json.RawMessage) *openAIError {
	fields, err := openAIFields(at, raw, "type", "id", "call_id", "name", "arguments", "status")
	if err != nil {
		return err
	}
	id, err := openAIShort(at+".call_id", fields["call_id"], 64)
	if err != nil {
		return err
	}
	if _, ok := c.calls[id]; ok {
		return invalidAt(at+".call_id", "", "Duplicate function call found with call_id %s.", id)
	}
	name, err := checkOpenAIName(at+".name", fields["name"])
	if err != nil {
		return err
	}
	input, err := checkArguments(at+".arguments", fields["arguments"])
	if err != nil {
		return err
	}
	c.calls[id], c.open = name, append(c.open, id)
	c.hear(belay.RoleAssistant, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: name, Input: input}})
	return nil
}

func (c *responsesChecked) checkOutput(at string, raw json.RawMessage) *openAIError {
	fields, err := openAIFields(at, raw, "type", "id", "call_id", "output", "status")
	if err != nil {
		return err
	}
	id, err := openAIShort(at+".call_id", fields["call_id"], 64)
	if err != nil {
		return err
	}
	open := slices.Index(c.open, id)
	if open < 0 {
		return invalidAt("input", "", "No tool call found for function call output with call_id %s.", id)
	}
	c.open = slices.Delete(c.open, open, open+1)
	if fields["output"] == nil {
		return invalidAt(at+".output", "missing_required_parameter", "Missing required parameter: '%s.output'.", at)
	}
	result := belay.Result{}
	if text, err := openAIText(at+".output", fields["output"], false); err == nil {
		result.Text = text
	} else {
		list, err := openAIList(at+".output", fields["output"])
		if err != nil {
			return err
		}
		for i, raw := range list {
			part, err := checkResponsesContent(fmt.Sprintf("%s.output[%d]", at, i), raw, belay.RoleUser)
			if err != nil {
				return err
			}
			result.Text += part.Text
			if part.Media != nil {
				result.Media = append(result.Media, *part.Media)
			}
		}
	}
	c.hear(belay.RoleUser, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: c.calls[id], Result: result}})
	return nil
}
