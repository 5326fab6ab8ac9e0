// Package audit checks that the records of hooks, the approvals and the grants in a store
// are as they were written.
//
// store/sqlite and store/postgres keep a chain of hashes over these records, and implement
// Store. docs/design/audit.md describes the chain.
//
// # Usage
//
// VerifyAudit of a store compares the rows with the chain, and returns the rows that
// something other than the store has changed, removed or inserted. An Anchor is the hash of
// an entry of the chain. Keep anchors elsewhere: without one, somebody who can write to the
// database can make the whole chain anew.
//
// Export writes the chain and the rows with a signature. VerifyExport checks an export
// without the store. Verify is what both use, for any Source.
//
// # Concurrency
//
// All functions are safe for concurrent use. A store can be used while it is verified.
//
// # Errors
//
// A difference between rows and chain is no error: it is a Problem in a Verification.
// VerifyExport returns ErrExport or ErrSignature for a file that it does not trust.
//
// # Testing
//
// The tests of the stores change every column of every row, and verify finds each change.
package audit
