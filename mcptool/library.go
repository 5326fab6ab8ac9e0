package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

// The tools that read a server's resources and prompts. In an agent they have the
// server's name as a prefix, like the server's own tools.
const (
	readResource = "read_resource"
	getPrompt    = "get_prompt"
)

// library returns the tools for the resources and prompts of a server.
func library(caps *mcp.ServerCapabilities) (tools []*offered) {
	if caps == nil {
		return nil
	}
	if caps.Resources != nil {
		tools = append(tools, &offered{
			name: readResource, readOnly: true, read: (*serverTool).readResource,
			description: "Reads a resource of this MCP server by its URI. Without a URI it lists the available resources.",
			schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"uri":{"type":"string","description":"The URI of the resource. Omit it to list all resources."}}}`),
		})
	}
	if caps.Prompts != nil {
		tools = append(tools, &offered{
			name: getPrompt, readOnly: true, read: (*serverTool).getPrompt,
			description: "Returns a prepared prompt of this MCP server by its name. Without a name it lists the available prompts with their arguments.",
			schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"name":{"type":"string","description":"The name of the prompt. Omit it to list all prompts."},` +
				`"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"The arguments of the prompt."}}}`),
		})
	}
	return tools
}

// readResource reads one resource. Without a URI it lists all resources.
func (t *serverTool) readResource(ctx context.Context, f *life, call *belay.Invocation) (belay.Result, error) {
	var in struct {
		URI string `json:"uri"`
	}
	if err := call.Decode(&in); err != nil {
		return belay.Failed(belay.ClassInvalid, err.Error()), nil
	}
	if in.URI == "" {
		return t.listResources(ctx, f)
	}
	read, err := f.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: in.URI})
	if err != nil {
		return belay.Result{}, err //nolint:wrapcheck // the caller inspects the error
	}
	var out belay.Result
	var texts []string
	for _, c := range read.Contents {
		text, media := resource(c)
		if media != nil {
			out.Media = append(out.Media, *media)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		texts = []string{"The resource is empty."}
	}
	out.Text = strings.Join(texts, "\n")
	return out, nil
}

// listResources lists the resources of the server, and its URI templates.
func (t *serverTool) listResources(ctx context.Context, f *life) (belay.Result, error) {
	all, more, err := resourcesOf(ctx, f.session)
	return belay.Result{Text: listed(all, more, "This server currently has no resources.")}, err
}

// getPrompt returns one prompt. Without a name it lists all prompts.
func (t *serverTool) getPrompt(ctx context.Context, f *life, call *belay.Invocation) (belay.Result, error) {
	var in struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := call.Decode(&in); err != nil {
		return belay.Failed(belay.ClassInvalid, err.Error()), nil
	}
	if in.Name == "" {
		return t.listPrompts(ctx, f)
	}
	prompt, err := f.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: in.Name, Arguments: in.Arguments})
	if err != nil {
		return belay.Result{}, err //nolint:wrapcheck // the caller inspects the error
	}
	var out belay.Result
	var texts []string
	for _, m := range prompt.Messages {
		text, media := content(m.Content)
		if media != nil {
			out.Media = append(out.Media, *media)
		}
		texts = append(texts, fmt.Sprintf("[%s]\n%s", m.Role, text))
	}
	if len(texts) == 0 {
		texts = []string{"The prompt is empty."}
	}
	out.Text = strings.Join(texts, "\n\n")
	return out, nil
}

func (t *serverTool) listPrompts(ctx context.Context, f *life) (belay.Result, error) {
	all, more, err := promptsOf(ctx, f.session)
	return belay.Result{Text: listed(all, more, "This server currently has no prompts.")}, err
}
