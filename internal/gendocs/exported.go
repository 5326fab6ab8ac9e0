package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// exported lists what programs can use of the Go packages, one name in a line, and the names that are experimental with the reason.
// Experimental names are not in the list, because nothing is promised about them.
type exported struct {
	lines        []string
	experimental [][2]string
}

// readExported reads the packages of the repository, as they are on Linux.
func readExported(root string) (*exported, error) {
	packages, err := load(root)
	if err != nil {
		return nil, err
	}
	e := new(exported)
	for _, p := range packages {
		if err := e.add(p); err != nil {
			return nil, err
		}
	}
	e.addInternal(packages[0])
	slices.Sort(e.lines)
	return e, nil
}

// internalType is a type of an internal package in a line: a program cannot name it, and can use what it has.
var internalType = lazyregexp.New(`[a-z/]*\binternal/[a-z/]+\.[A-Z]\w*`)

// addInternal adds the types of internal packages that the lines name.
func (e *exported) addInternal(from *loaded) {
	seen := map[string]bool{}
	for next := 0; next < len(e.lines); next++ { //nolint:intrange // it grows
		for _, match := range internalType.FindAllString(e.lines[next], -1) {
			path, name, _ := strings.Cut(match, ".")
			p := from.known[from.module+"/"+path]
			if seen[match] || p == nil { // nil: it is of another module
				continue
			}
			seen[match] = true
			l := &listing{e, &loaded{module: from.module, name: path}, nil}
			l.addType(p.Scope().Lookup(name).(*types.TypeName))
		}
	}
}

// add adds a package.
func (e *exported) add(p *loaded) error {
	trial, err := e.readComments(p)
	if err != nil {
		return err
	}
	if trial[""] {
		return nil
	}
	l := &listing{e, p, trial}
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		if !ast.IsExported(name) || trial[name] {
			continue
		}
		switch o := scope.Lookup(name).(type) {
		case *types.Const:
			l.linef("const %s%s = %s", name, l.typeOf(o), o.Val().ExactString())
		case *types.Var:
			l.linef("var %s%s", name, l.typeOf(o))
		case *types.Func:
			l.linef("func %s%s", name, l.signature(o.Type()))
		case *types.TypeName:
			l.addType(o)
		}
	}
	return nil
}

// readComments notes the experimental names of a package, and returns them. The name of the package itself is "".
func (e *exported) readComments(p *loaded) (map[string]bool, error) {
	trial := map[string]bool{}
	docs, err := doc.NewFromFiles(p.set, p.files, p.name)
	if err != nil {
		return nil, err
	}
	if trial[""] = e.isExperimental(p.name, docs.Doc); trial[""] {
		return trial, nil
	}
	note := func(name, comment string) {
		trial[name] = e.isExperimental(p.name+"."+name, comment)
	}
	values := func(groups ...[]*doc.Value) {
		for _, v := range slices.Concat(groups...) {
			for _, spec := range v.Decl.Specs {
				for _, n := range spec.(*ast.ValueSpec).Names { // the only kind in groups of constants and variables
					if n.IsExported() {
						note(n.Name, v.Doc+spec.(*ast.ValueSpec).Doc.Text())
					}
				}
			}
		}
	}
	functions := func(of string, all []*doc.Func) {
		for _, f := range all {
			note(of+f.Name, f.Doc)
		}
	}
	values(docs.Consts, docs.Vars)
	functions("", docs.Funcs)
	for _, t := range docs.Types {
		if note(t.Name, t.Doc); trial[t.Name] {
			continue
		}
		values(t.Consts, t.Vars)
		functions("", t.Funcs)
		functions(t.Name+".", t.Methods)
	}
	return trial, nil
}

// listing adds the names of one package.
type listing struct {
	*exported

	of    *loaded
	trial map[string]bool // the experimental names
}

func (l *listing) linef(format string, args ...any) {
	l.lines = append(l.lines, "pkg "+l.of.name+", "+fmt.Sprintf(format, args...))
}

// text returns a type as it is written in the package. Other packages have their path, because two may have one name.
func (l *listing) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == l.of.types {
			return ""
		}
		return strings.TrimPrefix(p.Path(), l.of.module+"/")
	})
}

// typeOf returns the type of a value after a space, or "" if a constant takes the type that its use wants.
func (l *listing) typeOf(o types.Object) string {
	if b, ok := o.Type().(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		return ""
	}
	return " " + l.text(o.Type())
}

// signature returns the parameters and results of a function.
func (l *listing) signature(t types.Type) string { return strings.TrimPrefix(l.text(t), "func") }

// addType adds a type with its methods. Fields have lines of their own, because a program keeps compiling with more of them.
func (l *listing) addType(o *types.TypeName) {
	name := l.text(o.Type())
	if a, ok := o.Type().(*types.Alias); ok {
		l.linef("type %s = %s", name, l.text(a.Rhs()))
		return
	}
	switch under := o.Type().Underlying().(type) {
	case *types.Struct:
		l.linef("type %s struct", name)
		l.fields(o, under)
		l.methods(o)
	case *types.Interface:
		l.contract(o.Name(), name, under)
	default:
		l.linef("type %s %s", name, l.text(under))
		l.methods(o)
	}
}

// fields adds the fields of a struct. What an embedded type without an exported name has belongs to the struct for programs.
func (l *listing) fields(of *types.TypeName, s *types.Struct) {
	for i := range s.NumFields() {
		f := s.Field(i)
		if inner, ok := structOf(f.Type()); ok && f.Embedded() && !f.Exported() {
			l.fields(of, inner)
			continue
		}
		if found, _, _ := types.LookupFieldOrMethod(of.Type(), true, f.Pkg(), f.Name()); !f.Exported() || found != f { // another name hides it
			continue
		}
		name := f.Name()
		if f.Embedded() {
			name = "embeds"
		}
		l.linef("type %s struct, %s %s%s", of.Name(), name, l.text(f.Type()), keys(s.Tag(i)))
	}
}

// structOf returns the struct of a type or of a pointer to it.
func structOf(t types.Type) (*types.Struct, bool) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	return s, ok
}

// keys returns the parts of a field's tag that files and messages depend on. The rest is text for people.
func keys(tag string) string {
	var found strings.Builder
	for _, kind := range []string{"json", "yaml"} {
		if value, ok := reflect.StructTag(tag).Lookup(kind); ok {
			fmt.Fprintf(&found, " %s:%q", kind, value)
		}
	}
	return found.String()
}

// methods adds the methods of a type, also those of embedded types without an exported name. The others are listed with their type.
func (l *listing) methods(o *types.TypeName) {
	direct := types.NewMethodSet(o.Type())
	for selected := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		m := selected.Obj()
		if !m.Exported() || l.trial[o.Name()+"."+m.Name()] || isEmbedded(o.Type(), selected.Index()) {
			continue
		}
		star := "*"
		if direct.Lookup(m.Pkg(), m.Name()) != nil {
			star = ""
		}
		l.linef("func (%s%s) %s%s", star, o.Name(), m.Name(), l.signature(selected.Type()))
	}
}

// isEmbedded reports whether the path to a method goes through an embedded type that has a line of its own.
func isEmbedded(t types.Type, path []int) bool {
	for _, i := range path[:len(path)-1] {
		s, _ := structOf(t) // only structs embed
		if s.Field(i).Exported() {
			return true
		}
		t = s.Field(i).Type()
	}
	return false
}

// contract adds an interface. A method more is a method that the types of a program may lack, so all are in one line. If no other
// package can implement the interface, each has its own.
func (l *listing) contract(name, whole string, t *types.Interface) {
	if !t.IsMethodSet() {
		l.linef("type %s %s", whole, l.text(t))
		return
	}
	var methods []string
	for m := range t.Methods() {
		if m.Exported() {
			methods = append(methods, m.Name()+l.signature(m.Type()))
		}
	}
	if len(methods) == t.NumMethods() {
		l.linef("type %s interface { %s }", whole, strings.Join(methods, "; "))
		return
	}
	l.linef("type %s interface { unexported methods }", whole)
	for _, m := range methods {
		l.linef("type %s interface, %s", name, m)
	}
}

// isExperimental reports whether a comment has a paragraph that begins with "Experimental:", and notes the reason.
func (e *exported) isExperimental(name, comment string) bool {
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		if reason, ok := strings.CutPrefix(paragraph, "Experimental:"); ok {
			e.experimental = append(e.experimental, [2]string{name, strings.Join(strings.Fields(reason), " ")})
			return true
		}
	}
	return false
}

// list returns the names for docs/reference/exported.txt.
func (e *exported) list() []byte { return []byte(strings.Join(e.lines, "\n") + "\n") }

// table returns the experimental names for the docs.
func (e *exported) table() string {
	var b strings.Builder
	b.WriteString("| experimental | why |\n|---|---|\n")
	for _, x := range e.experimental {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x[0], x[1])
	}
	return b.String()
}
