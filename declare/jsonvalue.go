package declare

import (
	"encoding/json"

	"github.com/belay-run/belay/internal/frontmatter"
)

// readJSON reads a file in JSON as if it were YAML, with the line of every value.
func readJSON(text []byte) (frontmatter.Value, error) {
	return frontmatter.ReadJSON(string(text))
}

// asJSON writes a value of a file as JSON.
func asJSON(v frontmatter.Value) json.RawMessage { return v.JSON() }
