// Package looptest tests the behaviour of an agent from the outside: whole turns with
// scripted models, tools, hooks, approvals, stores and failures. The package contains only
// tests. Tests of one function are next to that function. Examples of the root package are
// in the root package.
package looptest
