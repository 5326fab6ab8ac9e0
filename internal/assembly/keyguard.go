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

// keyGuard returns a guard for the files that hold keys of providers, secrets of channels or the
// password of the store, and for the tokens of the server. No mode, rule or approval lets a call read or change such a file. The guard
// uses the findings of the floor about a call. For programs that the floor cannot analyse,
// the sandbox hides the files.
func keyGuard(s *config.Loaded, floor *permit.Options) ([]permit.Guard, error) {
	files, tokens := keyFiles(s), tokenPlaces(s)
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
				return fmt.Errorf("%s contains a key or a password, and only Belay may read or change it", f.Subject)
			}
			if below(path, tokens) || err == nil && below(direct, tokens) {
				return fmt.Errorf("%s has tokens of Belay, and only Belay may read or change them", f.Subject)
			}
		}
		return nil
	}
	return []permit.Guard{{ID: "belay.keys", Check: check}}, nil
}

// keyFiles returns the files that hold keys of providers or secrets of channels, and the
// settings files with the password of a database. It also returns the targets of links.
func keyFiles(s *config.Loaded) []string {
	var files []string
	for _, file := range s.PasswordFiles() {
		files = append(files, withTarget(file)...)
	}
	for _, name := range s.ProviderNames() {
		p, err := s.Provider(name)
		if err != nil || p.KeyFile == "" {
			continue // the provider is unknown or has no key file
		}
		files = append(files, withTarget(p.KeyFile)...)
	}
	for _, name := range s.ChannelNames() {
		c := s.Channels[name]
		for _, secret := range []config.Secret{c.Token, c.AppToken, c.Secret} {
			if secret.File != "" {
				files = append(files, withTarget(secret.File)...)
			}
		}
	}
	return files
}

// withTarget returns a file and, if it is a link, its target.
func withTarget(file string) []string {
	files := []string{filepath.Clean(file)}
	if direct, err := filepath.EvalSymlinks(file); err == nil {
		files = append(files, direct)
	}
	return files
}

// TokenDir returns the directory with the tokens of belay serve and of MCP servers, or "" if the user has no
// directory for settings.
func TokenDir(s *config.Loaded) string {
	if s.UserDir == "" {
		return ""
	}
	return filepath.Join(s.UserDir, "tokens")
}

// tokenPlaces returns the directory of the tokens and the file of the setting token_file, and
// their targets if they are links.
func tokenPlaces(s *config.Loaded) []string {
	var places []string
	for _, place := range []string{TokenDir(s), s.TokenFile} {
		if place == "" {
			continue
		}
		places = append(places, place)
		if direct, err := filepath.EvalSymlinks(place); err == nil && direct != place {
			places = append(places, direct)
		}
	}
	return places
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
func hidden(s *config.Loaded) []string {
	return slices.Concat(keyFiles(s), tokenPlaces(s), liveDirs(s))
}
