package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// responsesEvent is an event of a stream, with the fields that this package reads.
type responsesEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int             `json:"output_index"`
	SummaryIndex int             `json:"summary_index"`
	Delta        string          `json:"delta"`
	Arguments    string          `json:"arguments"`
	Item         json.RawMessage `json:"item"`
	Response     responsesWhole  `json:"response"`
}

// responsesItem is an item of a response.
type responsesItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Phase     string `json:"phase"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
	Content []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// responsesWhole is a response in the form that the service sends.
type responsesWhole struct {
	Model             string          `json:"model"`
	Status            string          `json:"status"`
	Error             *serviceError   `json:"error"`
	Output            json.RawMessage `json:"output"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input        int `json:"input_tokens"`
		Output       int `json:"output_tokens"`
		InputDetails struct {
			Read    int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// responsesAssembly builds a response from the events of the Responses API.
type responsesAssembly struct {
	assembly

	items map[int]*piece // pieces by the index of the item in the output
	done  bool
}

func (w responsesProtocol) assemble(names map[string]string) assembler { //nolint:ireturn // either protocol has its own
	return &responsesAssembly{assembly: assembly{provider: w.provider, names: names}, items: map[int]*piece{}}
}

func (r *responsesAssembly) complete() (now, atEnd bool) { return r.done, r.done }

// event processes an event. Most servers also send the type outside the JSON data. So
// event need not decode the many events that only repeat known content.
func (r *responsesAssembly) event(raw wire.Event) ([]belay.Chunk, error) {
	switch raw.Type {
	case "response.created", "response.in_progress", "response.output_text.done", "response.content_part.added", "response.content_part.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done", "response.reasoning_summary_text.done":
		return nil, nil
	case "response.function_call_arguments.done":
		if !slices.ContainsFunc(r.pieces, func(p *piece) bool { return p.kind == belay.PartCall && len(p.text) == 0 }) {
			return nil, nil // the event repeats the deltas
		}
	}
	if strings.HasPrefix(string(raw.Data), "[DONE]") {
		return nil, nil // some servers end every stream with [DONE]
	}
	kind, err := kindOfEvent(raw)
	if err != nil {
		return nil, err
	}
	var e responsesEvent
	switch kind {
	case "":
		return nil, nil
	case "error":
		return nil, readError(raw.Data)
	}
	if err := json.Unmarshal(raw.Data, &e); err != nil {
		return nil, wire.Unexpected("the event "+kind, err)
	}
	switch kind {
	case "response.output_item.added":
		if err := r.added(e.OutputIndex, e.Item); err != nil {
			return nil, err
		}
	case "response.output_text.delta":
		r.extend(r.at(e.OutputIndex, belay.PartText), e.Delta)
	case "response.refusal.delta":
		r.refused = true
		r.extend(r.at(e.OutputIndex, belay.PartText), e.Delta)
	case "response.reasoning_summary_text.delta":
		p := r.at(e.OutputIndex, belay.PartThinking)
		if e.SummaryIndex != p.part && len(p.text) > 0 {
			r.extend(p, "\n\n")
		}
		p.part = e.SummaryIndex
		r.extend(p, e.Delta)
	case "response.reasoning_text.delta":
		r.extend(r.at(e.OutputIndex, belay.PartThinking), e.Delta)
	case "response.function_call_arguments.delta":
		r.extend(r.at(e.OutputIndex, belay.PartCall), e.Delta)
	case "response.function_call_arguments.done":
		if p := r.at(e.OutputIndex, belay.PartCall); len(p.text) == 0 {
			r.extend(p, e.Arguments)
		}
	case "response.output_item.done":
		if err := r.finished(e.OutputIndex, e.Item); err != nil {
			return nil, err
		}
	case "response.completed", "response.incomplete", "response.failed":
		if err := r.end(&e.Response); err != nil {
			return nil, err
		}
	}
	return r.take(), nil
}

// heeded are the event types that this package decodes. The data of other events may have
// any form.
var heeded = map[string]bool{
	"response.output_item.added": true, "response.output_item.done": true, "response.output_text.delta": true, "response.refusal.delta": true,
	"response.reasoning_summary_text.delta": true, "response.reasoning_text.delta": true,
	"response.function_call_arguments.delta": true, "response.function_call_arguments.done": true,
	"response.completed": true, "response.incomplete": true, "response.failed": true, "error": true,
}

// kindOfEvent returns the type of an event, from its name or else from its data. It returns
// an empty string for an event to ignore.
func kindOfEvent(raw wire.Event) (string, error) {
	if heeded[raw.Type] {
		return raw.Type, nil
	}
	var e struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	switch err := json.Unmarshal(raw.Data, &e); {
	case err != nil:
		return "", wire.Unexpected("the event "+raw.Type, err)
	case heeded[e.Type]:
		return e.Type, nil
	case e.Type == "" && len(e.Error) > 0 && string(e.Error) != "null":
		return "error", nil // sent by a gateway
	default:
		return "", nil
	}
}

// at returns the part at an index of the output. If there is none, it starts a part.
func (r *responsesAssembly) at(index int, kind belay.PartType) *piece {
	p := r.items[index]
	if p == nil {
		p = r.begin(kind)
		r.items[index] = p
	}
	return p
}

// itemKinds are the item types that become parts of a response.
var itemKinds = map[string]belay.PartType{"message": belay.PartText, "reasoning": belay.PartThinking, "function_call": belay.PartCall}

// readItem decodes an item if its type is in itemKinds. Other items may have any form, and
// their kind is empty.
func readItem(raw json.RawMessage) (item responsesItem, kind belay.PartType, err error) {
	var typed struct {
		Type string `json:"type"`
	}
	if err = json.Unmarshal(raw, &typed); err == nil {
		if kind = itemKinds[typed.Type]; kind != "" {
			err = json.Unmarshal(raw, &item)
		}
	}
	if err != nil {
		err = wire.Unexpected("an item of the response", err)
	}
	return item, kind, err
}

// added starts an item. More of its content may arrive later.
func (r *responsesAssembly) added(index int, raw json.RawMessage) error {
	item, kind, err := readItem(raw)
	if err != nil {
		return err
	}
	p := r.at(index, kind)
	if p.kind == belay.PartCall {
		r.call(p, item.CallID, item.Name)
	}
	return nil
}

// finished ends an item. If no deltas arrived for it, finished adds its content now.
func (r *responsesAssembly) finished(index int, raw json.RawMessage) error {
	item, kind, err := readItem(raw)
	if err != nil {
		return err
	}
	p := r.at(index, kind)
	told := len(p.text) > 0
	switch p.kind {
	case belay.PartText:
		p.opaque.Phase = item.Phase
		for _, c := range item.Content {
			r.refused = r.refused || c.Type == "refusal"
			if !told {
				r.extend(p, c.Text+c.Refusal)
			}
		}
	case belay.PartThinking:
		r.thought(p, &item, told)
	case belay.PartCall:
		r.call(p, item.CallID, item.Name)
		if !told {
			r.extend(p, item.Arguments)
		}
	default:
	}
	return nil
}

// thought ends a reasoning item.
func (r *responsesAssembly) thought(p *piece, item *responsesItem, told bool) {
	if item.Encrypted != "" {
		p.opaque.ID, p.opaque.Encrypted = item.ID, item.Encrypted
	}
	var texts []string
	for _, s := range item.Summary {
		texts = append(texts, s.Text)
	}
	if len(texts) > 1 && item.Encrypted != "" {
		p.opaque.Summary = texts
	}
	for _, c := range item.Content { // from models that show their thinking
		texts = append(texts, c.Text)
	}
	if !told {
		r.extend(p, strings.Join(texts, "\n\n"))
	}
}

// end ends the response. If no items arrived before, it adds the items of the response.
func (r *responsesAssembly) end(whole *responsesWhole) error {
	if whole.Error != nil {
		return whole.Error
	}
	if whole.Status == "failed" {
		return &serviceError{Message: "the service reports that the response failed, and gives no reason"}
	}
	if len(r.items) == 0 && len(whole.Output) > 0 {
		var items []json.RawMessage
		if err := json.Unmarshal(whole.Output, &items); err != nil {
			return wire.Unexpected("the output of the response", err)
		}
		for i, item := range items {
			if err := r.finished(i, item); err != nil {
				return err
			}
		}
	}
	r.done, r.model = true, whole.Model
	u := &whole.Usage
	r.count(u.Input, u.Output, u.InputDetails.Read, u.InputDetails.Written)
	r.ended()
	switch whole.IncompleteDetails.Reason {
	case "max_output_tokens":
		r.stop = belay.StopMaxTokens
	case "content_filter":
		r.stop = belay.StopRefusal
	}
	return nil
}

// whole processes an answer that is not a stream.
func (r *responsesAssembly) whole(body []byte) ([]belay.Chunk, error) {
	var whole responsesWhole
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, wire.Unexpected("the answer", err)
	}
	if whole.Error == nil && whole.Output == nil && whole.Status == "" {
		return nil, errNoAnswer
	}
	if err := r.end(&whole); err != nil {
		return nil, err
	}
	return r.take(), nil
}
