package permit

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sh is dash on some machines and bash on others, and the two differ. ((ls)) is
// arithmetic in bash, but runs ls in dash. [[ a > b ]] compares in bash, but writes a
// file in dash. So the analysis parses a script with bash syntax twice, once for each
// shell, and records the effects of both readings.

// bashOnly reports whether a script has syntax that sh may lack or read differently.
func bashOnly(file *syntax.File) bool {
	for n := range syntax.Preorder(file) {
		if isBashOnly(n) {
			return true
		}
	}
	return false
}

func isBashOnly(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.ArithmCmd, *syntax.TestClause, *syntax.LetClause, *syntax.CoprocClause, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.CStyleLoop:
		return true
	case *syntax.DeclClause:
		return n.Variant.Value != "export" && n.Variant.Value != "readonly"
	case *syntax.Lit:
		return strings.Contains(n.Value, "{")
	case *syntax.SglQuoted:
		return n.Dollar
	case *syntax.DblQuoted:
		return n.Dollar
	case *syntax.ArithmExp:
		return n.Bracket
	case *syntax.FuncDecl:
		return n.RsrvWord
	case *syntax.ForClause:
		return n.Select
	case *syntax.Assign:
		return n.Append || n.Array != nil || n.Index != nil
	case *syntax.BinaryCmd:
		return n.Op == syntax.PipeAll
	case *syntax.CaseItem:
		return n.Op != syntax.Break
	case *syntax.ParamExp:
		return n.Excl || n.Slice != nil || n.Repl != nil || n.Index != nil || n.Names != 0 || n.Exp != nil && strings.ContainsAny(n.Exp.Op.String(), "^,@")
	case *syntax.Redirect:
		number := n.Word != nil && (isNumber(n.Word.Lit()) || n.Word.Lit() == "-")
		return n.Op == syntax.RdrAll || n.Op == syntax.AppAll || n.Op == syntax.WordHdoc || (n.Op == syntax.DplOut || n.Op == syntax.DplIn) && !number ||
			n.N != nil && !isNumber(n.N.Value)
	default:
		return false
	}
}
