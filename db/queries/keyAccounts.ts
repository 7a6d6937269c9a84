/**
 * SQL of the account that a call is compared under: the one that it names, else that of its provider key, else ''
 * (docs/decisions/0089). Looked up when it is compared and not when it is stored, so that a key entered later counts too.
 * `row` has provider_account_id and provider_key_id; `biller` is the parameter of who bills it; $1 the organization.
 */
export const keyAccount = (row: string) =>
  `coalesce(nullif(${row}.provider_account_id, ''), key_account.provider_account_id, '')`;

/** The join that `keyAccount` needs. */
export const joinKeyAccount = (row: string, biller: string) =>
  `left join provider_keys key_account on key_account.org_id = $1 and key_account.provider = ${biller}
     and key_account.provider_key_id = ${row}.provider_key_id`;
