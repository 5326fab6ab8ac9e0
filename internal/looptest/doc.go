// Package looptest tests what an agent does from the outside: whole turns with
// scripted models, tools, hooks, approvals, stores and failures. It has no code
// besides its tests. The tests of one function are next to that function; the
// examples of the root package are next to the root package.
package looptest
