import type { Migration } from './migration.js';

const checkOf = (fields: string, more = '') => `
alter table organizations drop constraint organizations_settings_check;
alter table organizations add constraint organizations_settings_check check (
  jsonb_typeof(settings) = 'object'
  and settings - array[${fields}] = '{}'
  and jsonb_typeof(coalesce(settings -> 'drop_payloads', 'false')) = 'boolean'
  and jsonb_typeof(coalesce(settings -> 'holidays', '[]')) = 'array'
  and jsonb_typeof(coalesce(settings -> 'time_zone', '""')) = 'string'
  and jsonb_typeof(coalesce(settings -> 'counted_scopes', '[]')) = 'array'${more}
);
`;
const FORMER = `'drop_payloads', 'holidays', 'time_zone', 'counted_scopes'`;

/** The setting that says how a chargeback shares out spend that belongs to no bucket. */
export const chargebackSetting: Migration = {
  name: '0045_chargeback_setting',
  up: checkOf(
    `${FORMER}, 'chargeback_allocation'`,
    `
  and jsonb_typeof(coalesce(settings -> 'chargeback_allocation', '""')) = 'string'`,
  ),
  down: `
update organizations set settings = settings - 'chargeback_allocation';
${checkOf(FORMER)}`,
};
