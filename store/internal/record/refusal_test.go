package record_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// neverOfAStore are the exported errors that no store returns.
var neverOfAStore = []string{
	"belay.ErrNoAnswer", "belay.ErrNobody", "belay.ErrOver", "belay.ErrBusy", "belay.ErrParked", "belay.ErrNotSteered", "belay.ErrHandedOver",
	"hook.ErrClosed", "hook.ErrReleased",
}

// ofStores are the exported errors that stores return.
var ofStores = map[string]error{
	"belay.ErrHeld": belay.ErrHeld, "belay.ErrFenced": belay.ErrFenced, "belay.ErrConflict": belay.ErrConflict, "belay.ErrNotFound": belay.ErrNotFound,
	"belay.ErrNoTurn": belay.ErrNoTurn, "belay.ErrClosed": belay.ErrClosed, "belay.ErrCursor": belay.ErrCursor,
	"belay.ErrDecided": belay.ErrDecided, "belay.ErrWrongHash": belay.ErrWrongHash, "belay.ErrExpired": belay.ErrExpired, "belay.ErrScope": belay.ErrScope,
	"hook.ErrSettled": hook.ErrSettled, "hook.ErrQueueFull": hook.ErrQueueFull, "hook.ErrNotFound": hook.ErrNotFound, "hook.ErrJobState": hook.ErrJobState,
}

// Every exported error of the packages belay and hook is a refusal, unless no store returns it.
// So a new error cannot be forgotten.
func TestEveryErrorOfAStoreIsARefusal(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"belay": "../../..", "hook": "../../../hook"} {
		errs := exportedErrors(t, name, dir)
		if len(errs) < 5 {
			t.Fatalf("package %s has only the errors %q", name, errs)
		}
		for _, one := range errs {
			err, known := ofStores[one]
			switch {
			case slices.Contains(neverOfAStore, one):
			case !known:
				t.Errorf("%s is new: if a store can return it, add it to refusals and to this test", one)
			case !record.IsRefusal(fmt.Errorf("decide: %w: sql: Scan error", err)):
				t.Errorf("%s is not a refusal", one)
			}
		}
	}
	if record.IsRefusal(nil) || record.IsRefusal(record.ErrUnreadable) {
		t.Error("a damaged row is a refusal")
	}
}

// exportedErrors returns the exported variables of a package whose names begin with Err.
func exportedErrors(t *testing.T, pkg, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range values.Names {
						if strings.HasPrefix(id.Name, "Err") && id.Name != "Error" {
							names = append(names, pkg+"."+id.Name)
						}
					}
				}
			}
		}
	}
	return names
}
