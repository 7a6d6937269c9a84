/**
 * SQL of the account that a call is compared under: the one that it names, else that of its provider key, else ''
 * (docs/reconciliation.md). Looked up when it is compared and not when it is stored, so that a key entered later counts too.
 * `row` has provider_account_id and provider_key_id; `biller` is the parameter of who bills it; $1 the organization.
 */
export const keyAccount = (row: string) =>
  `coalesce(nullif(${row}.provider_account_id, ''), key_account.provider_account_id, '')`;

/** The join that `keyAccount` needs: one lookup a row, with and without statistics (docs/decisions/0042). */
export const joinKeyAccount = (row: string, biller: string) =>
  `left join lateral (select provider_account_id from provider_keys
     where org_id = $1 and provider = ${biller} and provider_key_id = ${row}.provider_key_id offset 0) key_account on true`;
