package acp

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
)

// message translates the blocks of a prompt. What the user typed is one text. Each embedded
// file is a part of its own, so that a /word in a file is no command.
func message(blocks []sdk.ContentBlock, dir string) (text string, parts []belay.Part, err error) {
	var typed strings.Builder
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Text != nil:
			typed.WriteString(b.Text.Text)
		case b.ResourceLink != nil:
			typed.WriteString(mention(b.ResourceLink.Name, b.ResourceLink.Uri, dir))
		case b.Resource != nil:
			part, name, err := embedded(&b.Resource.Resource, dir)
			if err != nil {
				return "", nil, err
			}
			typed.WriteString(name)
			parts = append(parts, part)
		case b.Image != nil:
			data, err := bytesOf("the image", b.Image.Data)
			if err != nil {
				return "", nil, err
			}
			parts = append(parts, belay.Image(b.Image.MimeType, data))
		case b.Audio != nil:
			return "", nil, invalid("the prompt has audio, which Belay does not support")
		default:
			return "", nil, invalid("prompt[%d]: the kind of the content is not supported", i)
		}
	}
	if strings.TrimSpace(typed.String()) == "" && len(parts) == 0 {
		return "", nil, invalid("the prompt is empty: add a text, an image or a file")
	}
	return typed.String(), parts, nil
}

// mention names a file or another resource in the user's text. A file in the project has the
// name that the tools use.
func mention(name, uri, dir string) string {
	path, ok := filePath(uri)
	if !ok {
		if name == "" || name == uri {
			return uri
		}
		return fmt.Sprintf("%s (%s)", name, uri)
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	if at, err := url.Parse(uri); err == nil && at.Fragment != "" { // such as L10:20, for lines
		path += "#" + at.Fragment
	}
	return "`" + path + "`"
}

// filePath returns the path of a file URI.
func filePath(uri string) (string, bool) {
	at, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", false
	case at.Scheme == "file" && at.Path != "":
		return filepath.FromSlash(at.Path), true
	case at.Scheme == "" && filepath.IsAbs(uri):
		return uri, true
	default:
		return "", false
	}
}

// embedded returns an embedded resource as a part, and its name in the user's text.
func embedded(r *sdk.EmbeddedResourceResource, dir string) (part belay.Part, name string, err error) {
	switch {
	case r.TextResourceContents != nil:
		name = mention("", r.TextResourceContents.Uri, dir)
		text := r.TextResourceContents.Text
		fence := fenceFor(text)
		return belay.Text(fmt.Sprintf("Content of %s, from the editor:\n%s\n%s\n%s", name, fence, strings.TrimSuffix(text, "\n"), fence)), name, nil
	case r.BlobResourceContents != nil:
		blob := r.BlobResourceContents
		name = mention("", blob.Uri, dir)
		data, err := bytesOf(name, blob.Blob)
		if err != nil {
			return part, "", err
		}
		mime := "application/octet-stream"
		if blob.MimeType != nil {
			mime = *blob.MimeType
		}
		return belay.File(filepath.Base(strings.Trim(name, "`")), mime, data), name, nil
	default:
		return part, "", invalid("an embedded resource has neither a text nor a blob")
	}
}

// bytesOf decodes base64.
func bytesOf(what, text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid("%s is not valid base64: %v", what, err)
	}
	return data, nil
}

// fenceFor returns a fence for a block of code in Markdown that the text does not contain.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// fenced returns a text as a block of code in Markdown.
func fenced(text string) string {
	fence := fenceFor(text)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// titleOf returns the first line of a text as the title of a session.
func titleOf(text string) string {
	const longest = 80
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if short := []rune(line); len(short) > longest {
		return string(short[:longest-1]) + "…"
	}
	return line
}
