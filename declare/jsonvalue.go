package declare

import (
	"encoding/json"

	"github.com/belay-run/belay/internal/frontmatter"
)

// readJSON parses JSON into values that know their line.
func readJSON(text []byte) (frontmatter.Value, error) {
	return frontmatter.ReadJSON(string(text))
}

func asJSON(v frontmatter.Value) json.RawMessage { return v.JSON() }
