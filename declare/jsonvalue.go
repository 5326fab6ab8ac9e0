package declare

import (
	"encoding/json"

	"github.com/belay-run/belay/internal/frontmatter"
)

// readJSON parses JSON into YAML nodes, so that every value has its line.
func readJSON(text []byte) (frontmatter.Value, error) {
	return frontmatter.ReadJSON(string(text))
}

// asJSON writes a value of a file as JSON.
func asJSON(v frontmatter.Value) json.RawMessage { return v.JSON() }
