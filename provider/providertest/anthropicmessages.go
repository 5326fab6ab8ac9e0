package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belay-run/belay"
)

type anthropicMessage struct {
	Role    belay.Role      `json:"role"`
	Content json.RawMessage `json:"content"`
}

// placed is a decoded part and its path in the request.
type placed struct {
	at   string
	part belay.Part
}

// side is a run of consecutive messages of one role. The service also joins them.
type side struct {
	role  belay.Role
	parts []placed
}

// checkMessages checks the conversation.
func (c *anthropicChecked) checkMessages(messages []json.RawMessage) error {
	var sides []side
	for i, raw := range messages {
		at := fmt.Sprintf("messages.%d", i)
		role, parts, err := c.checkMessage(at, raw)
		if err != nil {
			return err
		}
		if n := len(sides); n > 0 && sides[n-1].role == role {
			sides[n-1].parts = append(sides[n-1].parts, parts...)
		} else {
			sides = append(sides, side{role, parts})
		}
	}
	if sides[0].role != belay.RoleUser {
		return errors.New("messages.0.role: the first message must use the user role")
	}
	for i, s := range sides {
		var before, after *side
		if i > 0 {
			before = &sides[i-1]
		}
		if i+1 < len(sides) {
			after = &sides[i+1]
		}
		if last := s.parts[len(s.parts)-1]; last.part.Type == belay.PartThinking {
			return fmt.Errorf("%s: the final block in an assistant message cannot be thinking", last.at)
		}
		if err := checkCalls(&s, after); err != nil {
			return err
		}
		if err := checkResults(&s, before); err != nil {
			return err
		}
		heard := Heard{Role: s.role}
		for _, p := range s.parts {
			heard.Parts = append(heard.Parts, p.part)
		}
		c.heard = append(c.heard, heard)
	}
	return nil
}

// checkMessage checks one message, without the messages around it.
func (c *anthropicChecked) checkMessage(at string, raw json.RawMessage) (belay.Role, []placed, error) {
	var m anthropicMessage
	if err := strict(at, raw, &m); err != nil {
		return "", nil, err
	}
	if m.Role != belay.RoleUser && m.Role != belay.RoleAssistant {
		return "", nil, fmt.Errorf("%s.role: %q is neither user nor assistant", at, m.Role)
	}
	blocks, err := blocksOf(at+".content", m.Content)
	if err != nil {
		return "", nil, err
	}
	if len(blocks) == 0 {
		return "", nil, fmt.Errorf("%s: messages must have non-empty content", at)
	}
	var parts []placed
	for i, raw := range blocks {
		at := fmt.Sprintf("%s.content.%d", at, i)
		b, err := c.block(at, raw)
		if err != nil {
			return "", nil, err
		}
		part, err := c.hear(at, b)
		if err != nil {
			return "", nil, err
		}
		if !fits(m.Role, part.Type) {
			return "", nil, fmt.Errorf("%s: a block of type %s does not belong to the %s", at, b.Type, m.Role)
		}
		if part.Call != nil {
			if _, ok := c.names[part.Call.ID]; ok {
				return "", nil, fmt.Errorf("%s: tool_use ids must be unique, %q is used twice", at, part.Call.ID)
			}
			c.names[part.Call.ID] = part.Call.Tool
		}
		parts = append(parts, placed{at, part})
	}
	return m.Role, parts, nil
}

// fits reports whether a message of a role may have a part of this type.
func fits(role belay.Role, part belay.PartType) bool {
	switch part {
	case belay.PartCall, belay.PartThinking:
		return role == belay.RoleAssistant
	case belay.PartResult, belay.PartMedia:
		return role == belay.RoleUser
	default:
		return true
	}
}

// checkCalls checks that the next side begins with the results of all calls.
func checkCalls(s, after *side) error {
	open := map[string]string{}
	for _, p := range s.parts {
		if call := p.part.Call; call != nil {
			open[call.ID] = p.at
		}
	}
	if after != nil {
		for _, p := range after.parts {
			if p.part.Result == nil {
				break // results must be first
			}
			delete(open, p.part.Result.Call)
		}
	}
	if len(open) == 0 {
		return nil
	}
	ids := slices.Collect(maps.Keys(open))
	return fmt.Errorf("%s: tool_use ids were found without tool_result blocks immediately after: %s", open[slices.Min(ids)], quoted(ids))
}

// checkResults checks that each result belongs to a call of the previous side.
func checkResults(s, before *side) error {
	open := map[string]bool{}
	if before != nil {
		for _, p := range before.parts {
			if p.part.Call != nil {
				open[p.part.Call.ID] = true
			}
		}
	}
	for _, p := range s.parts {
		if p.part.Result == nil {
			continue
		}
		id := p.part.Result.Call
		if answered, ok := open[id]; !ok {
			return fmt.Errorf("%s: unexpected tool_use_id %q: the message before has no such tool_use", p.at, id)
		} else if !answered {
			return fmt.Errorf("%s: each tool_use must have a single result, %q has two", p.at, id)
		}
		open[id] = false
	}
	return nil
}

// unmarked removes the cache marks from a request.
func unmarked(body []byte) []byte {
	const mark = `"cache_control":{"type":"ephemeral"}`
	body = bytes.ReplaceAll(body, []byte(","+mark), nil)
	return bytes.ReplaceAll(body, []byte(mark+","), nil)
}

// anthropicExtends returns an error if the later request does not begin with the earlier
// request. The error says where they differ.
func anthropicExtends(earlier, later []byte) error {
	from, to, err := sameFields(earlier, later, "messages")
	if err != nil {
		return err
	}
	old, err := flatten(from)
	if err != nil {
		return err
	}
	extended, err := flatten(to)
	if err != nil {
		return err
	}
	return begins("block", old, extended)
}

// flatten returns the blocks of a conversation. Each string is a role and an unchanged
// block.
func flatten(messages json.RawMessage) ([]string, error) {
	var list []anthropicMessage
	if err := json.Unmarshal(messages, &list); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	var blocks []string
	for _, m := range list {
		content, err := blocksOf("messages", m.Content)
		if err != nil {
			return nil, err
		}
		for _, b := range content {
			blocks = append(blocks, string(m.Role)+" "+string(b))
		}
	}
	return blocks, nil
}
