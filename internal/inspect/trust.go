package inspect

import (
	"os"
	"time"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/space"
)

// Trust says whether a person has trusted a directory of hooks.
type Trust struct {
	// Dir is the directory. Origin is project or space.
	Dir    string `json:"dir"`
	Origin string `json:"origin"`
	Space  string `json:"space,omitempty"`
	// State is unchanged, changed, has mistakes or directory missing. A changed directory is
	// no longer trusted.
	State  string    `json:"state"`
	Grants []string  `json:"grants,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// ListTrust returns the directories that the user has trusted.
func ListTrust(s *config.Loaded) ([]Trust, error) {
	if s.UserDir == "" {
		return nil, nil
	}
	records, err := assembly.OpenTrust(s).Records()
	if err != nil {
		return nil, err
	}
	host := space.NewHost(&space.Options{Trust: assembly.OpenTrust(s)})
	var all []Trust
	for _, r := range records {
		all = append(all, Trust{Dir: r.Dir, Origin: r.Origin.String(), Space: r.Space, State: TrustState(host, r), Grants: r.Grants, By: r.By, At: r.At})
	}
	return all, nil
}

// TrustState returns the state of a trusted directory, see [Trust].State.
func TrustState(host *space.Host, r *space.Record) string {
	if _, err := os.Stat(r.Dir); err != nil {
		return "directory missing"
	}
	loaded, err := space.Load(r.Dir, r.Origin)
	if err != nil {
		return "has mistakes"
	}
	if st, err := host.Standing(loaded); err != nil || !st.Trusted {
		return "changed"
	}
	return "unchanged"
}
