package assembly

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/wholefile"
	"github.com/belay-run/belay/space"
)

// registeredHere returns the spaces that the project loads, without duplicates.
func registeredHere(s *config.Loaded) ([]Registered, error) {
	all, err := ReadRegistry(s)
	var here []Registered
	for _, r := range all {
		if r.In(s.Project) && !slices.ContainsFunc(here, func(o Registered) bool { return o.Dir == r.Dir }) {
			here = append(here, r)
		}
	}
	return here, err
}

// SpacesHere returns the spaces that the project loads and that can be read. OpenPlaces
// reports the problems of the others.
func SpacesHere(s *config.Loaded) []*space.Space {
	list, _ := registeredHere(s)
	var all []*space.Space
	for _, r := range list {
		if loaded, _ := space.Load(r.Dir, hook.OriginSpace); loaded.Manifest.ID != "" {
			all = append(all, loaded)
		}
	}
	return all
}

// A Registered is a space that is loaded by the agents of all projects, or by the agents
// of one project.
type Registered struct {
	Dir string `json:"dir"`
	// ID is the id in the manifest when the space was loaded. Older files do not have it.
	ID string `json:"id,omitempty"`
	// Project is the only project that loads the space. Empty means all projects.
	Project string `json:"project,omitempty"`

	program bool // the program itself loads it: see config.Loaded.Spaces
}

// In reports whether a project loads the space.
func (r Registered) In(project string) bool {
	return r.Project == "" || r.Project == project || r.Project == RealDir(project)
}

// Gone reports whether the directory of the space no longer exists.
func (r Registered) Gone() bool {
	_, err := os.Stat(r.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// name returns the id of the space, or else its directory.
func (r Registered) name() string { return cmp.Or(r.ID, r.Dir) }

// remedy says what to do if the directory of the space no longer exists.
func (r Registered) remedy() string {
	if r.program {
		return "restore this directory, or remove it from the spaces that the program loads"
	}
	return fmt.Sprintf("restore this directory, or run `belay space unload %s`", r.name())
}

// registryFile returns the file that lists the loaded spaces.
func registryFile(s *config.Loaded) string { return filepath.Join(s.UserDir, "spaces.json") }

// ReadRegistry returns all loaded spaces: those that the program itself loads, and those of
// the user's list.
func ReadRegistry(s *config.Loaded) ([]Registered, error) {
	var list []Registered
	for _, dir := range s.Spaces {
		list = append(list, Registered{Dir: dir, program: true})
	}
	if s.UserDir == "" {
		return list, nil
	}
	file := registryFile(s)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return list, fmt.Errorf("spaces: %w", err)
	}
	var listed []Registered
	if err := json.Unmarshal(text, &listed); err != nil {
		return list, fmt.Errorf("%s: the list of spaces is damaged: correct it, or remove it and load the spaces again: %w", file, err)
	}
	return append(list, listed...), nil
}

// WriteRegistry stores the list of loaded spaces.
func WriteRegistry(s *config.Loaded, list []Registered) (err error) {
	if s.UserDir == "" {
		return errors.New("spaces: there is no directory for the user's settings: set HOME")
	}
	slices.SortFunc(list, func(a, b Registered) int {
		return cmp.Or(strings.Compare(a.Dir, b.Dir), strings.Compare(a.Project, b.Project))
	})
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("spaces: %w", err)
	}
	if err := os.MkdirAll(s.UserDir, 0o700); err != nil {
		return fmt.Errorf("spaces: %w", err)
	}
	if err := wholefile.Write(registryFile(s), append(text, '\n')); err != nil {
		return fmt.Errorf("spaces: %w", err)
	}
	return nil
}
