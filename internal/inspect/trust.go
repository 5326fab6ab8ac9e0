package inspect

import (
	"os"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/diff"
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
		one := api.Trust{Dir: r.Dir, Origin: r.Origin.String(), Space: r.Space, State: TrustState(s, host, r), Grants: r.Grants, By: r.By, At: r.At}
		if one.State == "changed" {
			one.Changes = trustChanges(s, r)
		}
		all = append(all, one)
	}
	return all, nil
}

// trustChanges returns how the files of a directory differ from those that were trusted.
func trustChanges(s *config.Loaded, r *space.Record) []api.TrustChange {
	loaded, err := assembly.LoadTrusted(s, r)
	if err != nil {
		return nil // the state says that the directory has mistakes
	}
	var all []api.TrustChange
	for _, c := range loaded.Changes(r) {
		one := api.TrustChange{File: c.Name, Change: "changed"}
		before, after := "a/"+c.Name, "b/"+c.Name
		switch {
		case c.New:
			one.Change, before = "added", ""
		case c.Gone:
			one.Change, after = "removed", ""
		}
		if !c.Opaque {
			one.Diff, _, _ = diff.Unified(before, after, c.Before, c.After)
		}
		all = append(all, one)
	}
	return all
}

// TrustState returns the state of a trusted directory, see [Trust].State.
func TrustState(s *config.Loaded, host *space.Host, r *space.Record) string {
	if _, err := os.Stat(r.Dir); err != nil {
		return "directory missing"
	}
	loaded, err := assembly.LoadTrusted(s, r)
	if err != nil {
		return "has mistakes"
	}
	if st, err := host.Standing(loaded); err != nil || !st.Trusted {
		return "changed"
	}
	return "unchanged"
}
