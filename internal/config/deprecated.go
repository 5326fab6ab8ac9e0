package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// deprecated are settings that have another name now. Files may use the old name until the version after the next minor one.
var deprecated = []struct{ old, now string }{
	{"anthropic", "providers.anthropic"}, // from the time before there were other providers
}

// renamed returns the present name of a deprecated setting, or "".
func renamed(path string) string {
	for _, d := range deprecated {
		if d.old == path {
			return d.now
		}
	}
	return ""
}

// readRenamed reads a setting under its old name, and notes what to write instead. around is the mapping at the top of the file.
func (r *reading) readRenamed(old string, pair *ast.MappingValueNode, around ast.MapNode) {
	now := renamed(old)
	top, _, _ := strings.Cut(now, ".")
	for others := around.MapRange(); others.Next(); {
		if others.Key().String() == top {
			r.refusef(pair.Key, "%q is now %q: move it there, because line %d has %q already", old, now, lineOf(others.Key()), top)
			return
		}
	}
	r.into.Deprecated = append(r.into.Deprecated, fmt.Sprintf("%s: %q is deprecated: write %q", r.source(pair.Key), old, now))
	if slices.Contains(Paths(), now) {
		r.leaf(now, pair)
		return
	}
	// The setting is an entry of a larger one, such as a provider.
	whole, entry := now[:strings.LastIndex(now, ".")], now[strings.LastIndex(now, ".")+1:]
	named := func(name string) ast.MapKeyNode {
		return ast.String(token.New(name, name, pair.Key.GetToken().Position))
	}
	within := ast.Mapping(pair.Start, false, ast.MappingValue(pair.Start, named(entry), pair.Value))
	r.leaf(whole, ast.MappingValue(pair.Start, named(whole), within))
}
