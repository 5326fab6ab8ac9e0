package scripted

import "github.com/goccy/go-yaml/ast"

// line returns the line on which a node begins.
func line(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0]
	}
	if v, ok := node.(*ast.MappingValueNode); ok {
		node = v.Key
	}
	if node == nil || node.GetToken() == nil {
		return 1
	}
	return node.GetToken().Position.Line
}

// stepNodes returns the nodes of the steps of a valid script. It returns nil if the value
// of the key "steps" is not a list, for example because the value is an alias.
func stepNodes(root ast.Node) []ast.Node {
	m, ok := root.(ast.MapNode)
	if !ok {
		return nil
	}
	for entries := m.MapRange(); entries.Next(); {
		if entries.Key().GetToken().Value != "steps" {
			continue
		}
		value := entries.Value()
		if anchor, ok := value.(*ast.AnchorNode); ok {
			value = anchor.Value
		}
		if list, ok := value.(*ast.SequenceNode); ok {
			return list.Values
		}
	}
	return nil
}
