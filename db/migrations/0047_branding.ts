import type { Migration } from './migration.js';

/** The look of an organization's reports; null and no row: the defaults. */
export const branding: Migration = {
  name: '0047_branding',
  up: `
create table branding (
  org_id uuid primary key references organizations (id),
  brand_color text check (brand_color ~ '^#[0-9A-F]{6}$'),
  org_name text check (length(org_name) between 1 and 120),
  footer_text text check (length(footer_text) between 1 and 300),
  -- the name of the PNG in the blob store, and what it is
  logo_id uuid,
  logo_sha256 text check (logo_sha256 ~ '^[0-9a-f]{64}$'),
  logo_width integer check (logo_width > 0),
  logo_height integer check (logo_height > 0),
  updated_at timestamptz not null default now(),
  constraint branding_logo_check check (num_nulls(logo_id, logo_sha256, logo_width, logo_height) in (0, 4))
);
select protect_tenant_table('branding', 'select, insert, update');
`,
  down: 'drop table branding;',
};
