// Command cross checks that the module and its tests compile for other platforms. It checks the types of every package and of
// everything that they import from their source, and makes no machine code: that takes a tenth of the time of a build, and finds
// what differs between platforms. make cross-build also builds, vets and links.
//
//	go run ./internal/cross darwin/arm64 windows/amd64
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	failed := false
	for _, platform := range os.Args[1:] {
		problems, err := check(context.Background(), ".", platform)
		for _, p := range problems {
			fmt.Println(p)
		}
		if err == nil && len(problems) == 0 {
			fmt.Printf("cross: %s ok\n", platform)
			continue
		}
		failed = true
		if err != nil {
			fmt.Printf("cross: %s: %v\n", platform, err)
		}
	}
	if failed {
		fmt.Println("cross: FAILED: put code that one system does not have into a file with a build constraint")
		os.Exit(1)
	}
}

// listed is a package as go list prints it. Packages come after those that they import.
type listed struct {
	ImportPath string            `json:"ImportPath"` //nolint:tagliatelle // go list spells its fields so
	Dir        string            `json:"Dir"`        //nolint:tagliatelle // see above
	GoFiles    []string          `json:"GoFiles"`    //nolint:tagliatelle // see above
	Imports    []string          `json:"Imports"`    //nolint:tagliatelle // see above
	ImportMap  map[string]string `json:"ImportMap"`  //nolint:tagliatelle // see above
	Module     *struct {
		Main      bool   `json:"Main"`      //nolint:tagliatelle // see above
		GoVersion string `json:"GoVersion"` //nolint:tagliatelle // see above
	} `json:"Module"` //nolint:tagliatelle // see above
	Error *struct {
		Err string `json:"Err"` //nolint:tagliatelle // see above
	} `json:"Error"` //nolint:tagliatelle // see above
}

// checked is a package whose types are checked once done is closed.
type checked struct {
	types *types.Package
	done  chan struct{}
}

// check returns what does not compile in the module of dir, and in its dependencies.
func check(ctx context.Context, dir, platform string) (problems []string, err error) {
	system, arch, ok := strings.Cut(platform, "/")
	sizes := types.SizesFor("gc", arch)
	if !ok || sizes == nil {
		return nil, fmt.Errorf("%q is not a platform such as windows/amd64", platform)
	}
	list := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,Module,Error", "./...")
	list.Dir, list.Env = dir, append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	var complaints bytes.Buffer
	list.Stderr = &complaints
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, complaints.Bytes())
	}
	c := &checker{sizes: sizes, all: make(map[string]*checked), files: token.NewFileSet(), free: make(chan struct{}, runtime.GOMAXPROCS(0))}
	c.all["unsafe"] = &checked{types: types.Unsafe, done: make(chan struct{})}
	close(c.all["unsafe"].done)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Error != nil {
			c.report(p.Error.Err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // go test generates the latter, alike for each platform
			continue
		}
		made := &checked{done: make(chan struct{})}
		c.all[p.ImportPath] = made
		imports := make(map[string]*checked)
		for _, path := range p.Imports { // after ImportMap
			imports[path] = c.all[path]
		}
		c.running.Go(func() { // ends when the packages before it have ended
			defer close(made.done)
			c.check(&p, imports, made)
		})
	}
	c.running.Wait()
	slices.Sort(c.problems)
	return slices.Compact(c.problems), nil
}

// checker checks packages, as many at once as there are processors.
type checker struct {
	sizes   types.Sizes
	all     map[string]*checked // by import path; only the goroutine that starts the others uses it
	files   *token.FileSet
	free    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	problems []string
}

func (c *checker) report(problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, problem)
}

func (c *checker) check(p *listed, imports map[string]*checked, made *checked) {
	for _, other := range imports {
		if other != nil {
			<-other.done
		}
	}
	c.free <- struct{}{}
	defer func() { <-c.free }()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.report(err.Error())
			continue
		}
		files = append(files, file)
	}
	config := types.Config{
		Sizes: c.sizes,
		// The bodies of others compile, or do not, whatever Belay does.
		IgnoreFuncBodies: p.Module == nil || !p.Module.Main,
		Error:            func(err error) { c.report(err.Error()) },
		Importer: importer(func(path string) (*types.Package, error) {
			if variant, ok := p.ImportMap[path]; ok {
				path = variant
			}
			if other := imports[path]; other != nil && other.types != nil {
				return other.types, nil
			}
			return nil, fmt.Errorf("%s imports %s, which go list does not name", p.ImportPath, path)
		}),
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")                        // go list adds which test a variant is for
	made.types, _ = config.Check(path, c.files, files, new(types.Info)) // Error gets every error
}

type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importer) Import(path string) (*types.Package, error) { return f(path) }
