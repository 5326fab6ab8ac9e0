package inspect

import (
	"os"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/space"
)

// ListTrust returns the directories that the user has trusted.
func ListTrust(s *config.Loaded) ([]api.Trust, error) {
	if s.UserDir == "" {
		return nil, nil
	}
	records, err := assembly.OpenTrust(s).Records()
	if err != nil {
		return nil, err
	}
	host := space.NewHost(&space.Options{Trust: assembly.OpenTrust(s)})
	var all []api.Trust
	for _, r := range records {
		all = append(all, api.Trust{Dir: r.Dir, Origin: r.Origin.String(), Space: r.Space, State: TrustState(host, r), Grants: r.Grants, By: r.By, At: r.At})
	}
	return all, nil
}

// TrustState returns whether a trusted directory has changed.
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
