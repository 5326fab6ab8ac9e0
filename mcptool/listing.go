package mcptool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// list requests the tools of a server and publishes them.
func (l *link) list(f *life, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(f.ctx, within, errors.New("the server did not list its tools in time"))
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	announced := l.announced.Load()
	defer func() { // also after an error, so that waiting model requests continue
		l.listed.Store(announced)
		l.stir()
	}()
	v := &view{state: StateReady, info: f.session.InitializeResult()}
	caps := v.info.Capabilities
	seen, twice, entries, declared := make(map[string]bool), make(map[string]bool), 0, 0
	for tool, err := range toolsOf(ctx, f.session, caps) {
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("it does not list its tools: %w", err)
		}
		if entries++; entries > mostTools { // also stops a server that lists the same tool for ever
			v.left = append(v.left, fmt.Errorf("the server lists more than %d tools: agents get only the first ones", mostTools))
			break
		}
		if seen[tool.Name] {
			if !twice[tool.Name] {
				v.left = append(v.left, fmt.Errorf("tool %q: it is listed twice", tool.Name))
			}
			twice[tool.Name] = true
			continue
		}
		seen[tool.Name] = true
		o, err := offer(tool)
		if err != nil {
			v.left = append(v.left, fmt.Errorf("tool %q: %w", tool.Name, err))
			continue
		}
		if declared += len(o.schema) + len(o.description); declared > mostDeclared {
			v.left = append(v.left, fmt.Errorf("tool %q: the descriptions and schemas of its tools have more than %d KiB in total: list the tools you need under tools", tool.Name, mostDeclared>>10))
			break
		}
		v.tools = append(v.tools, o)
	}
	for _, own := range library(caps) {
		if seen[own.name] {
			v.left = append(v.left, fmt.Errorf("tool %q of Belay is not added: the server has a tool of the same name", own.name))
			continue
		}
		v.tools = append(v.tools, own)
	}
	for i, left := range v.left {
		v.left[i] = l.redacted(left)
	}
	slices.SortFunc(v.tools, func(a, b *offered) int { return strings.Compare(a.name, b.name) })
	for _, problem := range v.left {
		l.logger.Warn("mcp tool is left out", "server", l.name, "error", problem)
	}
	l.ready(f, v)
	return nil
}

// toolsOf returns the tools of a server, or none if the server does not offer tools.
func toolsOf(ctx context.Context, s *mcp.ClientSession, caps *mcp.ServerCapabilities) iter.Seq2[*mcp.Tool, error] {
	if caps == nil || caps.Tools == nil {
		return func(func(*mcp.Tool, error) bool) {}
	}
	return s.Tools(ctx, nil)
}

// offer reads the description of a tool. It returns an error for a tool that an agent
// cannot use, so that the server's other tools still work.
func offer(t *mcp.Tool) (*offered, error) {
	o := &offered{name: t.Name, description: cmp.Or(t.Description, t.Title)}
	o.description = cutText(o.description, mostDescription)
	if a := t.Annotations; a != nil {
		o.destructive = a.DestructiveHint != nil && *a.DestructiveHint
		o.readOnly = a.ReadOnlyHint && !o.destructive // the mark read-only is ignored if the tool is also marked as destructive
	}
	if t.Name == "" {
		return nil, errors.New("it has no name")
	}
	fields, ok := t.InputSchema.(map[string]any)
	if !ok && t.InputSchema != nil {
		return nil, errors.New("its input schema is not an object")
	}
	if fields == nil {
		fields = map[string]any{}
	}
	if fields["type"] == nil {
		fields["type"] = "object"
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if len(data) > mostSchema {
		return nil, fmt.Errorf("its input schema is longer than %d KiB, which is too long to send with every model request", mostSchema>>10)
	}
	o.schema = data
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if schema.Type != "object" {
		return nil, errors.New("its input schema must have the type object")
	}
	if _, err := schema.Resolve(nil); err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	return o, nil
}
