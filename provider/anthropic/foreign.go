package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/belay-run/belay"
)

// What the service takes as the name of a tool, and as the id of a call.
var (
	fitName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	fitID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	unfit   = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// wireName returns the name of a tool as the service takes it. It depends on
// nothing but the name, so that calls of long ago are sent alike; a hash keeps
// apart what would become the same.
func wireName(name string) string {
	if fitName.MatchString(name) {
		return name
	}
	fit := unfit.ReplaceAllString(name, "_")
	return fit[:min(len(fit), 100)] + "_" + hash(name)[:8]
}

// wireID returns the id of a call as the service takes it: that of another
// provider may have characters it refuses.
func wireID(id string) string {
	if fitID.MatchString(id) {
		return id
	}
	return "toolu_" + hash(id)[:32]
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// CheckTools says which tools cannot be declared to the service, and why. A
// request with such tools fails, with the same words, before anything is sent.
func (m *Model) CheckTools(tools []belay.ToolDeclaration) error {
	_, _, err := declare(tools)
	return err
}

// declare translates names and schemas of tools, and returns what the names that
// had to be translated stand for.
func declare(tools []belay.ToolDeclaration) ([]belay.ToolDeclaration, map[string]string, error) {
	var errs []error
	declared := make([]belay.ToolDeclaration, 0, len(tools))
	names, owners := map[string]string{}, map[string]string{}
	for _, t := range tools {
		name := t.Name
		t.Name = wireName(name)
		var err error
		switch owner, taken := owners[t.Name]; {
		case name == "":
			err = errors.New("it has no name")
		case taken:
			err = fmt.Errorf("the service would know it as %q, as it does %q: rename one of them", t.Name, owner)
		default:
			t.InputSchema, err = fitSchema(t.InputSchema)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %q: %w", name, err))
			continue
		}
		owners[t.Name] = name
		if t.Name != name {
			names[t.Name] = name
		}
		declared = append(declared, t)
	}
	return declared, names, errors.Join(errs...)
}
