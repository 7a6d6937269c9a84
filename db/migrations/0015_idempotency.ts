import type { Migration } from './migration.js';

/** Answers that are kept for a day, for requests that are sent again with the same Idempotency-Key (docs/decisions/0032). */
export const idempotency: Migration = {
  name: '0015_idempotency',
  up: `
create table idempotency_keys (
  org_id uuid not null references organizations (id),
  -- Text without a reference: rows go after a day, and looking at the key's row would take a lock on it.
  api_key_id text not null check (length(api_key_id) between 1 and 64),
  operation text not null check (length(operation) between 1 and 64),
  idempotency_key text not null check (idempotency_key ~ '^[A-Za-z0-9._:-]{1,128}$'),
  -- whose turn it is: what stores the answer is the attempt that holds the row
  attempt uuid not null,
  -- an attempt that has not answered until then has died; after the answer it says nothing
  lease_until timestamptz not null,
  -- sha256 over the request; null while a streamed body is under way
  fingerprint bytea check (length(fingerprint) = 32),
  -- null while the first attempt is under way
  status integer check (status between 200 and 499),
  -- the sealed answer; null also when it was given up with the key that sealed it
  ciphertext bytea,
  secret_key_id text,
  created_at timestamptz not null default now(),
  primary key (org_id, api_key_id, operation, idempotency_key),
  check (status is null or fingerprint is not null),
  check (ciphertext is null or status is not null),
  check ((ciphertext is null) = (secret_key_id is null))
);
create index idempotency_keys_by_age on idempotency_keys (created_at);
select protect_tenant_table('idempotency_keys', 'select, insert, update, delete');
`,
  down: `
drop table idempotency_keys;
`,
};
