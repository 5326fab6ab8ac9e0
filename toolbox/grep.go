package toolbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

const (
	defaultMatches = 200
	maxMatches     = 1_000
	// maxSearchers is how many files are searched in parallel. searchQueue is how many
	// files may wait to be searched, and how many may wait to be reported.
	maxSearchers = 8
	searchQueue  = 64
)

type grepInput struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Literal    bool   `json:"literal"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    int    `json:"context"`
	Mode       string `json:"mode"`
	Limit      int    `json:"limit"`
	All        bool   `json:"all"`
}

func (f *files) grepTool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newTool("grep", "Searches the files of the project for a regular expression (RE2), line by line. Binary files and files excluded by .gitignore are skipped.", `{
		"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
			"pattern": {"type": "string", "minLength": 1, "description": "the expression; there are no look-arounds and no back-references"},
			"path": {"type": "string", "description": "the directory or file to search; default the project"},
			"glob": {"type": "string", "description": "search only files that match, such as *.go or src/**/*.ts"},
			"literal": {"type": "boolean", "description": "take the pattern as plain text"},
			"ignore_case": {"type": "boolean"},
			"context": {"type": "integer", "minimum": 0, "maximum": 20, "description": "how many lines to show around each match"},
			"mode": {"enum": ["lines", "files", "count"], "description": "lines (default): show matching lines; files: only names of matching files; count: number of matching lines per file"},
			"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "maximum number of matches or files; default 200"},
			"all": {"type": "boolean", "description": "include files excluded by .gitignore"}
		}}`, lookOnly, f.doGrep)
}

func (f *files) doGrep(ctx context.Context, _ *belay.Invocation, in *grepInput) (belay.Result, error) {
	s, err := newSearch(in.Pattern, in.Literal, in.IgnoreCase)
	if err != nil {
		return belay.Result{}, failf(belay.ClassInvalid, "The pattern is not a regular expression: %v. For plain text set literal.", err)
	}
	var only *glob
	if in.Glob != "" {
		if only, err = parseGlob(in.Glob); err != nil {
			return belay.Result{}, err
		}
	}
	r := &report{mode: cmp.Or(in.Mode, "lines"), limit: cmp.Or(min(in.Limit, maxMatches), defaultMatches), context: in.Context}
	switch r.mode {
	case "files":
		s.noLines, s.maxLines = true, 1
	case "count":
		s.noLines, s.maxLines = true, int(^uint(0)>>1)
	default:
		s.around, s.maxLines = in.Context, r.limit+1 // one more than the limit, to find out whether there are more
	}
	at, err := f.directory(in.Path)
	file, isFile := errors.AsType[notDirectoryError](err)
	switch {
	case isFile:
		opened, _, err := file.at.open()
		if err != nil {
			return belay.Result{}, f.explain(file.at, err)
		}
		defer func() { _ = opened.Close() }() // only read, so an error does not matter
		found, err := s.in(ctx, opened, make([]byte, searchBlock))
		if err != nil {
			return belay.Result{}, f.explain(file.at, err)
		}
		r.add(file.at.shown, found)
	case err != nil:
		return belay.Result{}, err
	default:
		if err := s.tree(ctx, at, only, in.All, r.add); err != nil {
			return belay.Result{}, f.explain(at, err)
		}
	}
	return r.result(in.Pattern)
}

// job is a file to search, and its result.
type job struct {
	at   spot
	done chan *found // gets the result, or nil if the file could not be read
}

// tree searches a directory with several goroutines. It calls tell with the result of
// each file, in order, until tell returns false. All goroutines have ended when tree
// returns.
func (s *search) tree(ctx context.Context, top spot, only *glob, all bool, tell func(string, *found) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	queue := make(chan job, searchQueue) // files to search
	order := make(chan job, searchQueue) // files to report, in order
	for range min(runtime.GOMAXPROCS(0), maxSearchers) {
		wg.Go(func() {
			buf := make([]byte, searchBlock)
			for j := range queue {
				j.done <- s.open(ctx, j.at, buf)
			}
		})
	}
	var walked error
	wg.Go(func() {
		defer close(order) // after this, walked can be read
		defer close(queue)
		w := &walker{place: top.place, all: all, enter: func(dir string) bool {
			return only == nil || only.mayHold(below(top.rel, dir))
		}, visit: func(e entry) error {
			rel := below(top.rel, e.rel)
			if !e.mode.IsRegular() || only != nil && !only.matches(rel) {
				return nil
			}
			j := job{top.within(rel), make(chan *found, 1)}
			for _, to := range []chan job{order, queue} {
				select {
				case to <- j:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		}}
		walked = w.walk(ctx, top.rel)
	})
	for j := range order {
		select {
		case f := <-j.done:
			if f != nil && f.count > 0 && !tell(j.at.shown, f) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return walked
}

// open searches one file. It returns nil if the file cannot be read.
func (s *search) open(ctx context.Context, at spot, buf []byte) *found {
	file, _, err := at.open()
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read, so an error does not matter
	f, err := s.in(ctx, file, buf)
	if err != nil {
		return nil
	}
	return f
}

// report collects the output of a search.
type report struct {
	mode           string
	limit, context int
	text           strings.Builder
	view           GrepView
}

// add adds the result of a file. It returns false if there is no room for more.
func (r *report) add(name string, f *found) bool {
	if f.count == 0 {
		return true
	}
	file := GrepFile{Path: name}
	switch r.mode {
	case "files", "count":
		if len(r.view.Files) >= r.limit {
			r.view.Cut = true
			return false
		}
		file.Count = f.count
		r.text.WriteString(inText(name))
		if r.mode == "count" {
			fmt.Fprintf(&r.text, ": %d", f.count)
		}
		r.text.WriteByte('\n')
	default:
		if r.view.Matches >= r.limit || r.text.Len() > maxText {
			r.view.Cut = true
			return false
		}
		r.lines(&file, f)
	}
	r.view.Matches += file.Count
	r.view.Files = append(r.view.Files, file)
	return !r.view.Cut
}

// lines adds the matching lines of a file.
func (r *report) lines(file *GrepFile, f *found) {
	if r.text.Len() > 0 {
		r.text.WriteByte('\n')
	}
	r.text.WriteString(inText(file.Path) + "\n")
	last := 0
	for _, h := range f.hits {
		if h.matched && (r.view.Matches+file.Count >= r.limit || r.text.Len() > maxText) {
			r.view.Cut = true
			return
		}
		if r.context > 0 && last > 0 && h.line > last+1 {
			r.text.WriteString("--\n")
		}
		last = h.line
		sign := byte('-')
		if h.matched {
			sign = ':'
			file.Count++
			file.Lines = append(file.Lines, GrepLine{h.line, h.text})
		}
		fmt.Fprintf(&r.text, "%d%c %s\n", h.line, sign, h.text)
	}
}

func (r *report) result(pattern string) (belay.Result, error) {
	r.view.Kind, r.view.Pattern = "grep", pattern
	if len(r.view.Files) == 0 {
		return answer("No line matches.", r.view)
	}
	text := r.text.String()
	if r.view.Cut {
		what := plural(r.view.Matches, "match", "matches")
		if r.mode != "lines" {
			what = plural(len(r.view.Files), "file", "files")
		}
		text += fmt.Sprintf("[the first %s; there are more: narrow the pattern, path or glob]", what)
	}
	return answer(strings.TrimSuffix(text, "\n"), r.view)
}
