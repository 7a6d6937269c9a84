import type { Migration } from './migration.js';

/**
 * Bills of every provider: charges in a currency without a rate are kept in it, a bill may itself say which of
 * its days are final, and an export of a whole cloud account lists what was left out of it (docs/decisions/0009, 0011).
 */
export const billingFormats: Migration = {
  name: '0029_billing_formats',
  up: `
alter table billing_rows drop constraint billing_rows_check;
-- a cost row has dollars, or an amount in another currency that no rate was given for
alter table billing_rows add constraint billing_rows_money check (
  case feed when 'cost' then amount_usd is not null or (original_amount is not null and currency is not null and currency <> 'USD')
    else amount_usd is null end);

alter table billing_days
  -- as the bill itself says; null: it does not say, and the day's age tells
  add column is_final boolean,
  -- of row_count: charges that are in no sum of dollars
  add column unconverted_rows bigint not null default 0 check (unconverted_rows between 0 and row_count);
grant update (is_final) on billing_days to app_rw;

alter table billing_sources
  -- charges of other services, of which no row is kept: [{charge_category, currency, rows, amount}]
  add column left_out jsonb not null default '[]',
  -- charges that are kept and that nobody can convert: [{currency, rows, amount}]
  add column unconverted jsonb not null default '[]';
`,
  down: `
alter table billing_sources drop column unconverted, drop column left_out;
alter table billing_days drop column unconverted_rows, drop column is_final;
alter table billing_rows drop constraint billing_rows_money;
delete from billing_rows where feed = 'cost' and amount_usd is null;
alter table billing_rows add constraint billing_rows_check check ((feed = 'cost') = (amount_usd is not null));
`,
};
