package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

// The limits of a request to the agent's model (sampling).
const (
	mostSampled       = 10          // requests during one call
	mostSampledText   = 64 << 10    // bytes of one request
	mostSampledTokens = int64(4096) // tokens of one answer
)

// sample lets the agent's model answer a request of the server, if the user allows it. The
// server's declaration must allow it too: otherwise the server does not learn that Belay can
// do this.
func (l *link) sample(ctx context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // deprecated in the newest protocol, but servers use it
	refuse := func(why error) (*mcp.CreateMessageResult, error) { //nolint:staticcheck // likewise
		l.logger.Warn("cannot let the model answer an mcp server", "server", l.name, "error", l.redacted(why))
		return nil, &jsonrpc.Error{Code: -1, Message: why.Error()} // the protocol's code for a user who says no
	}
	c, err := l.asker(ctx)
	if err != nil {
		return refuse(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	request, whole, err := sampled(r.Params)
	if err != nil {
		return refuse(err)
	}
	if !c.maySample() {
		return refuse(fmt.Errorf("the server asks the model more than %d times during one call", mostSampled))
	}
	sum := sha256.Sum256([]byte(whole))
	said, err := c.put(ctx, l.spec, fmt.Sprintf("MCP server %s wants your agent's model to answer this text, with up to %d tokens that you pay for (request %s): %s\n  1. yes\n  2. no",
		l.name, request.MaxTokens, hex.EncodeToString(sum[:4]), cutText(printable(whole), mostQuestion)))
	if err != nil {
		return refuse(err)
	}
	if said = strings.ToLower(strings.TrimSpace(said)); said != "yes" && said != "y" && said != "1" {
		return refuse(errors.New("the user does not allow it"))
	}
	response, err := c.call.Controls().Generate(ctx, *request)
	if err != nil {
		return refuse(err)
	}
	var texts []string
	for _, p := range response.Parts {
		if p.Type == belay.PartText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return &mcp.CreateMessageResult{Role: "assistant", Model: response.Model, Content: &mcp.TextContent{Text: strings.Join(texts, "\n")}}, nil //nolint:staticcheck // likewise
}

// sampled converts a request of the server, and returns its whole text.
func sampled(in *mcp.CreateMessageParams) (*belay.Request, string, error) { //nolint:staticcheck // likewise
	out := &belay.Request{System: in.SystemPrompt, MaxTokens: int(min(max(in.MaxTokens, 1), mostSampledTokens))}
	texts := []string{}
	if in.SystemPrompt != "" {
		texts = append(texts, "[system] "+in.SystemPrompt)
	}
	size := len(in.SystemPrompt)
	for _, m := range in.Messages {
		text, ok := m.Content.(*mcp.TextContent)
		if !ok {
			return nil, "", errors.New("Belay passes only texts to the model, and the request has other content")
		}
		message := &belay.Message{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text.Text)}}
		if m.Role == "assistant" {
			message.Role, message.Kind = belay.RoleAssistant, belay.KindAssistant
		}
		out.Messages = append(out.Messages, message)
		texts = append(texts, fmt.Sprintf("[%s] %s", m.Role, text.Text))
		size += len(text.Text)
	}
	switch {
	case len(out.Messages) == 0:
		return nil, "", errors.New("the request has no messages")
	case size > mostSampledText:
		return nil, "", fmt.Errorf("the request has more than %d KiB of text", mostSampledText>>10)
	}
	return out, strings.Join(texts, "\n"), nil
}

// maySample counts a request to the model.
func (c *openCall) maySample() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampled++
	return c.sampled <= mostSampled
}
