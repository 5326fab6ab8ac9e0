package mcptool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
)

// result makes a tool result of a server's response. The model gets the content. Programs
// that show results to people get the structured content. If there is no other content,
// the model gets the structured content too.
func (t *serverTool) result(r *mcp.CallToolResult) belay.Result {
	if r.NeedsInput() {
		return belay.Failed(belay.ClassFailed, fmt.Sprintf("MCP server %q asks for more input in a form that Belay does not know.", t.server))
	}
	var out belay.Result
	var texts []string
	for _, c := range r.Content {
		text, media := content(c)
		if media != nil {
			out.Media = append(out.Media, *media)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	out.Text = strings.Join(texts, "\n")
	if r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			out.Render = data
			if len(r.Content) == 0 {
				out.Text = string(data)
			}
		}
	}
	if r.IsError {
		out.IsError, out.Class = true, belay.ClassFailed
		if out.Text == "" {
			out.Text = "The tool failed and gave no reason."
		}
	}
	return out
}

// content converts one piece of a response to text, media, or both.
func content(c mcp.Content) (string, *belay.Media) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text, nil
	case *mcp.ImageContent:
		return media(c.MIMEType, "", c.Data)
	case *mcp.AudioContent:
		return media(c.MIMEType, "", c.Data)
	case *mcp.EmbeddedResource:
		return resource(c.Resource)
	case *mcp.ResourceLink:
		text := "[resource " + c.URI
		if c.Name != "" {
			text += " (" + c.Name + ")"
		}
		if c.Description != "" {
			text += ": " + c.Description
		}
		return text + "]", nil
	default: // the protocol defines this type, but not for results
		text, err := c.MarshalJSON()
		if err != nil {
			return fmt.Sprintf("[content of type %T that cannot be shown: %v]", c, err), nil
		}
		return string(text), nil
	}
}

func resource(r *mcp.ResourceContents) (string, *belay.Media) {
	switch {
	case r == nil:
		return "", nil
	case r.Blob != nil:
		text, m := media(r.MIMEType, r.URI, r.Blob)
		if text == "" {
			text = "[resource " + r.URI + "]"
		}
		return text, m
	default:
		return fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text), nil
	}
}

// media returns an image or a document of a type that models accept. For other types it
// returns a text that describes the data.
func media(mime, name string, data []byte) (string, *belay.Media) {
	base, _, _ := strings.Cut(mime, ";")
	switch base = strings.ToLower(strings.TrimSpace(base)); base {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf":
		return "", &belay.Media{MIME: base, Name: name, Data: data}
	}
	text := fmt.Sprintf("[%d bytes of %s, which cannot be shown here", len(data), base)
	if name != "" {
		text += ": " + name
	}
	return text + "]", nil
}
