package assembly

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
)

// keyGuard returns a guard for the files that hold keys of providers, and for the tokens of
// the server. No mode, rule or approval lets a call read or change such a file. The guard uses the findings of the floor about a call.
// For programs that the floor cannot analyse, the sandbox hides the files.
func keyGuard(s *config.Loaded, floor *permit.Options) ([]permit.Guard, error) {
	files, tokens := keyFiles(s), tokenDirs(s)
	if len(files)+len(tokens) == 0 {
		return nil, nil
	}
	plain := *floor
	plain.Rules, plain.Guards = nil, nil
	reader, err := permit.New(s.Project, &plain)
	if err != nil {
		return nil, err
	}
	check := func(ctx context.Context, tool string, input json.RawMessage) error {
		findings := reader.Explain(ctx, tool, input).Findings
		for i := range findings {
			f := &findings[i]
			if f.Kind != permit.KindRead && f.Kind != permit.KindWrite {
				continue
			}
			path := filepath.FromSlash(f.Subject)
			if !filepath.IsAbs(path) {
				path = filepath.Join(s.Project, path)
			}
			direct, err := filepath.EvalSymlinks(path)
			if slices.Contains(files, path) || err == nil && slices.Contains(files, direct) {
				return fmt.Errorf("%s contains the API key of a model provider, and only Belay may read or change it", f.Subject)
			}
			if below(path, tokens) || err == nil && below(direct, tokens) {
				return fmt.Errorf("%s has the tokens of belay serve, and only Belay may read or change them", f.Subject)
			}
		}
		return nil
	}
	return []permit.Guard{{ID: "belay.keys", Check: check}}, nil
}

// keyFiles returns the files that hold keys of providers. It also returns the targets of
// links.
func keyFiles(s *config.Loaded) []string {
	var files []string
	for _, name := range s.ProviderNames() {
		p, err := s.Provider(name)
		if err != nil || p.KeyFile == "" {
			continue // the provider is unknown or has no key file
		}
		files = append(files, filepath.Clean(p.KeyFile))
		if direct, err := filepath.EvalSymlinks(p.KeyFile); err == nil {
			files = append(files, direct)
		}
	}
	return files
}

// TokenDir returns the directory with the tokens of belay serve, or "" if the user has no
// directory for settings.
func TokenDir(s *config.Loaded) string {
	if s.UserDir == "" {
		return ""
	}
	return filepath.Join(s.UserDir, "tokens")
}

// tokenDirs returns the directory of the tokens, and the target if it is a link.
func tokenDirs(s *config.Loaded) []string {
	dir := TokenDir(s)
	if dir == "" {
		return nil
	}
	dirs := []string{dir}
	if direct, err := filepath.EvalSymlinks(dir); err == nil && direct != dir {
		dirs = append(dirs, direct)
	}
	return dirs
}

// liveDirs returns the directory with the sockets through which processes exchange live
// events: see package store/sqlite. A program that writes to them could forge events. A
// read-only file system does not prevent this.
func liveDirs(s *config.Loaded) []string {
	if config.IsDSN(s.Store) || s.Store == "" {
		return nil
	}
	return []string{s.Store + "-live"}
}

// hidden returns the files and directories that commands in the sandbox cannot use.
func hidden(s *config.Loaded) []string { return slices.Concat(keyFiles(s), tokenDirs(s), liveDirs(s)) }
