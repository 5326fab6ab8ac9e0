package permit

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// uncertain returns what is known about a word with an unknown value: whether it is
// certainly a number or the hash of a commit, alone or as the value of an option. Such a
// word cannot name a file outside the project, and cannot be another option.
func (a *analysis) uncertain(w *syntax.Word) arg {
	word := arg{text: a.written(w)}
	parts, quoted := w.Parts, false
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok && !q.Dollar {
			parts, quoted = q.Parts, true
		}
	}
	option, sure := false, true // option: the word begins with a dash; sure: no part of it can be empty
	for i, part := range parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case ok && i == 0:
			option = strings.HasPrefix(lit.Value, "-")
			if !option || strings.Trim(lit.Value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-=") != "" {
				return word
			}
		case ok && (option || strings.Trim(lit.Value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.^~_-") != ""):
			return word
		case ok:
		case !a.isToken(part) && !(option && a.numeric(&syntax.Word{Parts: []syntax.WordPart{part}})):
			return word
		default:
			sure = sure && neverEmpty(part)
		}
	}
	word.text = strings.ReplaceAll(word.text, `"`, "")
	word.counts, word.firm = len(parts) > 0, sure || quoted && !option
	return word
}

// neverEmpty reports whether a number certainly has at least one digit.
func neverEmpty(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return p.Param != nil && plainParam(p) && oneOf(p.Param.Value, "# ? $")
	case *syntax.CmdSubst:
		if len(p.Stmts) != 1 || len(p.Stmts[0].Redirs) > 0 {
			return false
		}
		call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
		return ok && len(call.Args) == 1 && call.Args[0].Lit() == "nproc"
	default:
		return false
	}
}

// isToken reports whether a part of a word is certainly a number or the hash of a commit.
// A variable that the line has not set may hold anything.
func (a *analysis) isToken(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.DblQuoted:
		return !p.Dollar && len(p.Parts) == 1 && a.isToken(p.Parts[0])
	case *syntax.ParamExp:
		return p.Param != nil && plainParam(p) && (a.tokens.has(p.Param.Value) || oneOf(p.Param.Value, "# ? $ !"))
	case *syntax.ArithmExp:
		return true // the result is always a number
	case *syntax.CmdSubst:
		return len(p.Stmts) == 1 && (a.writesHash(p.Stmts[0]) || a.writesNumber(p.Stmts[0]))
	default:
		return false
	}
}

// writesHash reports whether everything that a statement can print is the hash of a
// commit. It returns false if the statement can print the name of a branch or a tag,
// because such a name may look like an option.
func (a *analysis) writesHash(s *syntax.Stmt) bool {
	words, ok := a.literals(s)
	if !ok || len(words) < 2 || words[0] != "git" {
		return false
	}
	operands := func(from int) bool {
		return len(words) > from && !slices.ContainsFunc(words[from:], func(w string) bool { return strings.HasPrefix(w, "-") })
	}
	switch words[1] {
	case "rev-parse":
		if len(words) > 2 && oneOf(words[2], "--short --verify") {
			return operands(3)
		}
		// git prints an argument that is not a commit unchanged.
		return len(words) == 3 && (strings.HasPrefix(words[2], "HEAD") || strings.HasPrefix(words[2], "@")) && strings.Trim(words[2], "HEAD@~^0123456789") == ""
	case "merge-base":
		return operands(2)
	case "rev-list":
		return len(words) > 3 && oneOf(words[2], "-1 -n1 --max-count=1") && operands(3)
	case "log":
		return len(words) > 3 && words[2] == "-1" && oneOf(words[3], "--format=%H --format=%h --pretty=%H --pretty=%h --pretty=format:%H --pretty=format:%h") && (len(words) == 4 || operands(4))
	default:
		return false
	}
}

// knownOrCounts is like known, but accepts unknown numbers and hashes.
func (c *invoked) knownOrCounts(args []arg) {
	for _, a := range args {
		if !a.known && !a.counts {
			c.known([]arg{a})
		}
	}
}
