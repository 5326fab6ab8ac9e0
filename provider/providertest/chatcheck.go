package providertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// chatFields are the fields that a request may have. Not all of them are checked.
var chatFields = []string{
	"model", "messages", "tools", "max_tokens", "max_completion_tokens", "reasoning_effort", "stream", "stream_options",
	"frequency_penalty", "logit_bias", "logprobs", "metadata", "modalities", "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
	"response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "temperature", "tool_choice", "top_logprobs", "top_p", "user", "verbosity",
}

// chatChecked is the decoded request. The checks fill it in.
type chatChecked struct {
	wire    *chatWire
	request *Request
	calls   map[string]string // the tool of each call, by the call's id
	open    []string          // ids of calls without a result
}

// check decodes and checks a request. It reports whether to stream the answer.
func (w *chatWire) check(request *Request) (stream bool, refused *openAIError) {
	fields, err := openAIFields("", request.Body, chatFields...)
	if err != nil {
		return false, err
	}
	stream = string(fields["stream"]) == "true"
	c := &chatChecked{wire: w, request: request, calls: map[string]string{}}
	if fields["stream_options"] != nil && !stream {
		return false, invalidAt("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	for _, check := range []func(map[string]json.RawMessage) *openAIError{c.checkSettings, c.checkTools, c.checkMessages} {
		if err := check(fields); err != nil {
			return false, err
		}
	}
	return stream, nil
}

// checkSettings checks everything except tools and messages.
func (c *chatChecked) checkSettings(fields map[string]json.RawMessage) *openAIError {
	if _, err := openAIText("model", fields["model"], true); err != nil {
		return err
	}
	if fields["max_tokens"] != nil && fields["max_completion_tokens"] != nil {
		return invalidAt("max_tokens", "", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if raw := fields[name]; raw != nil && (json.Unmarshal(raw, &c.request.MaxTokens) != nil || c.request.MaxTokens < 1) {
			return invalidAt(name, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %s instead.", name, raw)
		}
	}
	if raw := fields["stream_options"]; raw != nil {
		if _, err := openAIFields("stream_options", raw, "include_usage", "include_obfuscation"); err != nil {
			return err
		}
	}
	return openAIWord("reasoning_effort", fields["reasoning_effort"], "none", "minimal", "low", "medium", "high", "xhigh", "max")
}

func (c *chatChecked) checkTools(fields map[string]json.RawMessage) *openAIError {
	if fields["tools"] == nil {
		return nil
	}
	list, err := openAIList("tools", fields["tools"])
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return invalidAt("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1.")
	}
	if len(list) > 128 {
		return invalidAt("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length 128.")
	}
	for i, raw := range list {
		at := fmt.Sprintf("tools[%d]", i)
		tool, err := openAIFields(at, raw, "type", "function")
		if err != nil {
			return err
		}
		if err := openAIWord(at+".type", tool["type"], "function"); err != nil {
			return err
		}
		function, err := openAIFields(at+".function", tool["function"], "name", "description", "parameters", "strict")
		if err != nil {
			return err
		}
		if err := hearTool(c.request, at+".function", function, string(function["strict"]) == "true", 1024); err != nil {
			return err
		}
	}
	return nil
}

// checkMessages checks the conversation.
func (c *chatChecked) checkMessages(fields map[string]json.RawMessage) *openAIError {
	if fields["messages"] == nil {
		return invalidAt("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	list, err := openAIList("messages", fields["messages"])
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return invalidAt("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1.")
	}
	for i, raw := range list {
		if err := c.checkMessage(fmt.Sprintf("messages[%d]", i), raw); err != nil {
			return err
		}
	}
	return c.unanswered()
}

// unanswered returns an error if calls have no results directly after them.
func (c *chatChecked) unanswered() *openAIError {
	if len(c.open) == 0 {
		return nil
	}
	return invalidAt("messages", "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(c.open, ", "))
}

// hear adds a part to the decoded conversation.
func (c *chatChecked) hear(role belay.Role, part belay.Part) {
	if n := len(c.request.Messages); n > 0 && c.request.Messages[n-1].Role == role {
		c.request.Messages[n-1].Parts = append(c.request.Messages[n-1].Parts, part)
		return
	}
	c.request.Messages = append(c.request.Messages, Heard{role, []belay.Part{part}})
}

func (c *chatChecked) checkMessage(at string, raw json.RawMessage) *openAIError {
	var message struct {
		Role string `json:"role"`
	}
	if json.Unmarshal(raw, &message) != nil {
		return invalidAt(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	known := []string{"role", "content", "name"}
	switch message.Role {
	case "assistant":
		known = append(known, "tool_calls", "refusal", "audio")
		if c.wire.thinking != "" {
			known = append(known, c.wire.thinking)
		}
	case "tool":
		known = append(known, "tool_call_id")
	case "user", "system", "developer":
	default:
		return invalidAt(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", message.Role)
	}
	fields, err := openAIFields(at, raw, known...)
	if err != nil {
		return err
	}
	if message.Role != "tool" {
		if err := c.unanswered(); err != nil {
			return err
		}
	}
	switch message.Role {
	case "assistant":
		return c.checkAnswer(at, fields)
	case "tool":
		return c.checkResult(at, fields)
	case "user":
		parts, err := c.checkContent(at+".content", fields["content"], "text", "image_url", "file")
		for _, p := range parts {
			c.hear(belay.RoleUser, p)
		}
		return err
	default:
		parts, err := c.checkContent(at+".content", fields["content"], "text")
		for _, p := range parts {
			c.request.System += p.Text
		}
		return err
	}
}

// checkContent checks the content of a message: a string or a list of parts.
func (c *chatChecked) checkContent(at string, raw json.RawMessage, types ...string) ([]belay.Part, *openAIError) {
	if raw == nil || string(raw) == "null" {
		return nil, invalidAt(at, "invalid_type", "Invalid value for 'content': expected a string, got null.")
	}
	if text, err := openAIText(at, raw, false); err == nil {
		return []belay.Part{belay.Text(text)}, nil
	}
	list, err := openAIList(at, raw)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalidAt(at, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1.", at)
	}
	var parts []belay.Part
	for i, raw := range list {
		part, err := checkChatPart(fmt.Sprintf("%s[%d]", at, i), raw, types)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func checkChatPart(at string, raw json.RawMessage, types []string) (belay.Part, *openAIError) {
	fields, err := openAIFields(at, raw, "type", "text", "image_url", "file")
	if err != nil {
		return belay.Part{}, err
	}
	if fields["type"] == nil {
		return belay.Part{}, invalidAt(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
	}
	if err := openAIWord(at+".type", fields["type"], types...); err != nil {
		return belay.Part{}, err
	}
	switch string(fields["type"]) {
	case `"text"`:
		text, err := openAIText(at+".text", fields["text"], true)
		return belay.Text(text), err
	case `"image_url"`:
		image, err := openAIFields(at+".image_url", fields["image_url"], "url", "detail")
		if err != nil {
			return belay.Part{}, err
		}
		return openAIMedia(at+".image_url.url", image["url"], "", imageTypes)
	default:
		file, err := openAIFields(at+".file", fields["file"], "file_id", "filename", "file_data")
		if err != nil {
			return belay.Part{}, err
		}
		name, err := openAIText(at+".file.filename", file["filename"], true)
		if err != nil {
			return belay.Part{}, err
		}
		return openAIMedia(at+".file.file_data", file["file_data"], name, fileTypes)
	}
}

// checkAnswer checks a message of the model.
func (c *chatChecked) checkAnswer(at string, fields map[string]json.RawMessage) *openAIError {
	if err := c.checkThinking(at, fields); err != nil {
		return err
	}
	if content := fields["content"]; content != nil && string(content) != "null" || fields["tool_calls"] == nil {
		parts, err := c.checkContent(at+".content", content, "text", "refusal")
		if err != nil {
			return err
		}
		for _, p := range parts {
			c.hear(belay.RoleAssistant, p)
		}
	}
	if fields["tool_calls"] == nil {
		return nil
	}
	calls, err := openAIList(at+".tool_calls", fields["tool_calls"])
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		return invalidAt(at+".tool_calls", "empty_array", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1.", at)
	}
	for i, raw := range calls {
		if err := c.checkCall(fmt.Sprintf("%s.tool_calls[%d]", at, i), raw); err != nil {
			return err
		}
	}
	return nil
}

// checkCall checks a call in a message of the model.
func (c *chatChecked) checkCall(at string, raw json.RawMessage) *openAIError {
	call, err := openAIFields(at, raw, "id", "type", "function")
	if err != nil {
		return err
	}
	id, err := openAIShort(at+".id", call["id"], 40)
	if err != nil {
		return err
	}
	if _, ok := c.calls[id]; ok {
		return invalidAt(at+".id", "invalid_value", "Invalid '%s.id': the id %q is used twice.", at, id)
	}
	if string(call["type"]) != `"function"` {
		return invalidAt(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
	}
	function, err := openAIFields(at+".function", call["function"], "name", "arguments")
	if err != nil {
		return err
	}
	name, err := checkOpenAIName(at+".function.name", function["name"])
	if err != nil {
		return err
	}
	input, err := checkArguments(at+".function.arguments", function["arguments"])
	if err != nil {
		return err
	}
	c.calls[id], c.open = name, append(c.open, id)
	c.hear(belay.RoleAssistant, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: name, Input: input}})
	return nil
}

// checkThinking checks thinking in a message of the model.
func (c *chatChecked) checkThinking(at string, fields map[string]json.RawMessage) *openAIError {
	raw := fields[c.wire.thinking]
	if raw == nil {
		return nil
	}
	at = below(at, c.wire.thinking)
	if c.wire.thinking != "reasoning_details" {
		text, err := openAIText(at, raw, true)
		if err != nil {
			return err
		}
		c.wire.mu.Lock()
		defer c.wire.mu.Unlock()
		if !c.wire.thoughts[text] {
			return invalidAt(at, "invalid_value", "Invalid '%s': this was not thought here.", at)
		}
		c.hear(belay.RoleAssistant, thought(text))
		return nil
	}
	details, err := openAIList(at, raw)
	if err != nil {
		return err
	}
	for i, raw := range details {
		detail, err := openAIFields(fmt.Sprintf("%s[%d]", at, i), raw, "type", "text", "summary", "data", "signature", "format", "index", "id")
		if err != nil {
			return err
		}
		var d struct {
			Type      string `json:"type"`
			Text      string `json:"text"`
			Data      string `json:"data"`
			Signature string `json:"signature"`
		}
		if json.Unmarshal(raw, &d) != nil || detail["index"] == nil || detail["format"] == nil {
			return invalidAt(at, "invalid_value", "Invalid '%s[%d]': something is missing.", at, i)
		}
		switch {
		case d.Type == "reasoning.text" && d.Signature == signature(d.Text):
			c.hear(belay.RoleAssistant, thought(d.Text))
		case d.Type == "reasoning.encrypted" && isRedacted(d.Data):
			c.hear(belay.RoleAssistant, belay.Part{Type: belay.PartThinking, Opaque: encodeJSON(d.Data)})
		default:
			return invalidAt(at, "invalid_value", "Invalid '%s[%d]': it was not thought here, or was changed.", at, i)
		}
	}
	return nil
}

func (c *chatChecked) checkResult(at string, fields map[string]json.RawMessage) *openAIError {
	id, err := openAIShort(at+".tool_call_id", fields["tool_call_id"], 40)
	if err != nil {
		return err
	}
	open := slices.Index(c.open, id)
	if open < 0 {
		return invalidAt(at, "", "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
	}
	c.open = slices.Delete(c.open, open, open+1)
	parts, err := c.checkContent(at+".content", fields["content"], "text")
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	c.hear(belay.RoleUser, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: c.calls[id], Result: belay.Result{Text: text.String()}}})
	return nil
}
