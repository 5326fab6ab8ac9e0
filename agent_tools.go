package belay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/typeschema"
)

// toolset is the set of tools of an agent at one moment. A toolset never changes. Adding or
// removing a tool makes a new toolset, which turns use from their next step on.
type toolset struct {
	tools    []*boundTool // in the order in which they were added
	byName   map[string]*boundTool
	declared []ToolDeclaration // the declarations of the tools in scope
	names    []string          // the names of the tools in scope
}

// boundTool is a tool with everything that Belay computes once for it.
type boundTool struct {
	Tool
	name    string
	traits  ToolTraits
	schema  *jsonschema.Resolved // nil: any object is valid
	checker *typeschema.Checker  // accepts ordinary inputs faster than the schema; see typeschema.Checker
	input   *typeschema.Type     // the Go type of the input; nil for an untyped tool
	inScope bool
	owner   string // the extension that provides the tool; empty for the agent's own tools
}

// ownedTool is a tool with the extension that provides it.
type ownedTool struct {
	Tool
	owner string
}

func owned(owner string, tools []Tool) []ownedTool {
	all := make([]ownedTool, 0, len(tools))
	for _, t := range tools {
		all = append(all, ownedTool{t, owner})
	}
	return all
}

// ownerText returns the owner's name for error messages.
func ownerText(owner string) string {
	if owner == "" {
		return "the agent's own tools"
	}
	return fmt.Sprintf("extension %q", owner)
}

// fromText says where two tools with the same name come from.
func fromText(one, other string) string {
	if one == other {
		return "both come from " + ownerText(one)
	}
	return "one comes from " + ownerText(one) + ", the other from " + ownerText(other)
}

func (a *Agent) bind(composed *composition, t Tool, owner string) (*boundTool, error) {
	if t == nil {
		return nil, errors.New("a tool is nil")
	}
	d := t.Declaration()
	b := &boundTool{Tool: t, name: d.Name, owner: owner, inScope: a.inScope(d.Name) && composed.narrowed.allows(owner, d.Name)}
	if tt, ok := t.(TraitTool); ok {
		b.traits = tt.Traits()
	}
	b.input = inputTypeOf(t)
	orDefault(&b.traits.Timeout, a.opts.Limits.Tool)
	orDefault(&b.traits.MaxResult, a.opts.Limits.ResultCharacters)
	if !validToolName(d.Name) {
		return nil, fmt.Errorf("tool %q: invalid name: use 1 to 128 characters of A-Z, a-z, 0-9, _ and -", d.Name)
	}
	if b.traits.NeedsAuthorizer && b.inScope && a.opts.Authorizer == nil {
		return nil, uncheckedError{d.Name}
	}
	if len(d.InputSchema) == 0 {
		return b, nil
	}
	if b.input != nil && b.input.Schema.Type == "object" { // NewTool has compiled the schema
		b.schema, b.checker = b.input.Resolved, b.input.Checker
		return b, nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
		return nil, fmt.Errorf("tool %q: input schema: %w", d.Name, err)
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("tool %q: input schema: its type must be object: providers accept no other type", d.Name)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("tool %q: input schema: %w", d.Name, err)
	}
	b.schema, b.checker = resolved, typeschema.Compile(d.InputSchema, false)
	return b, nil
}

// uncheckedError is the error for tools that need an Authorizer if the agent has none. It
// lists the tools.
type uncheckedError []string

func (e uncheckedError) Error() string {
	return "these tools need a permission check: " + strings.Join(e, ", ") +
		"; the agent has no Authorizer: set Options.Authorizer to the result of permit.New, or to permit.Off() to allow every call"
}

func validToolName(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

func (a *Agent) inScope(name string) bool {
	if a.opts.Scope == nil {
		return true
	}
	return slices.ContainsFunc(a.opts.Scope, func(pattern string) bool { return matches(pattern, name) })
}

func newToolset(tools []*boundTool) *toolset {
	s := &toolset{tools: tools, byName: make(map[string]*boundTool, len(tools))}
	for _, t := range tools {
		s.byName[t.name] = t
		if t.inScope {
			s.declared = append(s.declared, t.Declaration())
			s.names = append(s.names, t.name)
		}
	}
	return s
}

// AddTools adds all of the tools or none. Closing the lease removes them. Turns see both
// changes from their next step on.
func (a *Agent) AddTools(tools ...Tool) (*Lease, error) {
	return a.addTools(a.composed.Load(), owned("", tools))
}

func (a *Agent) addTools(composed *composition, tools []ownedTool) (*Lease, error) {
	added, unbound := a.bindAll(composed, tools)
	a.changing.Lock()
	defer a.changing.Unlock()
	next, conflicts := a.withTools(added)
	if err := errors.Join(unbound, conflicts); err != nil {
		return nil, fmt.Errorf("add tools: %w", err)
	}
	a.tools.Store(next)
	return NewLease(func() {
		a.changing.Lock()
		defer a.changing.Unlock()
		a.tools.Store(a.tools.Load().without(added))
	}), nil
}

// RemoveTools removes tools by their names: all of them or none. It does what closing their
// leases does, no matter who has the leases, and also removes tools of Options.Tools. The leases
// can still be closed. RemoveTools fails if there is no such tool, or if the tool belongs to
// an extension: close the lease of the extension instead.
func (a *Agent) RemoveTools(names ...string) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	now := a.tools.Load()
	var gone []*boundTool
	var problems []error
	for _, name := range names {
		switch t := now.byName[name]; {
		case t == nil:
			problems = append(problems, fmt.Errorf("there is no tool %q", name))
		case t.owner != "":
			problems = append(problems, fmt.Errorf("tool %q belongs to extension %q: remove the extension instead", name, t.owner))
		default:
			gone = append(gone, t)
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("remove tools: %w", errors.Join(problems...))
	}
	a.tools.Store(now.without(gone))
	return nil
}

// bindAll binds tools. It runs code of the tools and recovers from a panic. If there is an
// error, it also returns the tools that are valid.
func (a *Agent) bindAll(composed *composition, tools []ownedTool) ([]*boundTool, error) {
	bound := make([]*boundTool, 0, len(tools))
	var problems []error
	var unchecked uncheckedError
	for _, t := range tools {
		b, err := a.bindSafely(composed, t)
		if one, ok := errors.AsType[uncheckedError](err); ok {
			unchecked = append(unchecked, one...)
			continue
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		bound = append(bound, b)
	}
	if len(unchecked) > 0 {
		problems = append(problems, unchecked)
	}
	return bound, errors.Join(problems...)
}

func (a *Agent) bindSafely(composed *composition, t ownedTool) (b *boundTool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a tool of %s panicked in its Declaration or Traits method: %v", ownerText(t.owner), p)
		}
	}()
	return a.bind(composed, t.Tool, t.owner)
}

// withTools returns the agent's toolset with more tools. The caller holds a.changing.
func (a *Agent) withTools(added []*boundTool) (*toolset, error) {
	now := a.tools.Load()
	have := make(map[string]*boundTool, len(added))
	var problems []error
	for _, b := range added {
		if other := cmp.Or(now.byName[b.name], have[b.name]); other != nil {
			problems = append(problems, fmt.Errorf("two tools have the name %q: %s", b.name, fromText(other.owner, b.owner)))
		}
		have[b.name] = b
	}
	next := newToolset(slices.Concat(now.tools, added))
	if len(problems) == 0 && len(added) > 0 {
		problems = append(problems, a.model.check(next.declared))
	}
	return next, errors.Join(problems...)
}

// without returns the toolset without some tools.
func (s *toolset) without(gone []*boundTool) *toolset {
	return newToolset(slices.DeleteFunc(slices.Clone(s.tools), func(t *boundTool) bool { return slices.Contains(gone, t) }))
}

// routedTool is a tool of a bundle. A hook declares the tool, and an extension runs it: see
// [ToolBundle].
type routedTool struct {
	declaration ToolDeclaration
	route       RouteExtension
}

func (r *routedTool) Declaration() ToolDeclaration { return r.declaration }

func (r *routedTool) Call(ctx context.Context, call *Invocation) (Result, error) {
	return r.route.Route(ctx, call)
}

// routes reports whether the extension that runs the tools of a bundle is still the same.
func (a *Agent) routes(name string, route RouteExtension) bool {
	now := a.route(name)
	return now != nil && (!reflect.ValueOf(route).Comparable() || among([]Extension{now}, route))
}

// route returns the extension with the given name, which runs the tools of a bundle.
func (a *Agent) route(name string) RouteExtension { //nolint:ireturn // it is one of several extensions
	for _, x := range a.composed.Load().extensions {
		if r, ok := x.Extension.(RouteExtension); ok && x.name == name {
			return r
		}
	}
	return nil
}
