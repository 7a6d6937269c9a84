import type { StoredBranding } from '../../domain/reports/branding.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray } from '../pgArray.js';

interface BrandingRow extends Omit<StoredBranding, 'logo'> {
  logoId: string | null;
  logoSha256: string;
  logoWidth: number;
  logoHeight: number;
}

/** Undefined: nothing has ever been set. */
export async function findBranding(orgDb: OrgDb): Promise<StoredBranding | undefined> {
  const [row] = await orgDb.rows<BrandingRow>(
    `select brand_color as "brandColor", org_name as "orgName", footer_text as "footerText", logo_id as "logoId",
       logo_sha256 as "logoSha256", logo_width as "logoWidth", logo_height as "logoHeight"
     from branding where org_id = $1`,
    [orgDb.orgId],
  );
  if (!row) return undefined;
  const { brandColor, orgName, footerText, logoId: id, logoSha256, logoWidth, logoHeight } = row;
  const logo = id === null ? null : { id, sha256: logoSha256, width: logoWidth, height: logoHeight };
  return { brandColor, orgName, footerText, logo };
}

export async function upsertBranding(inside: OrgDb, branding: StoredBranding): Promise<void> {
  const { brandColor, orgName, footerText, logo } = branding;
  await inside.run(
    `insert into branding (org_id, brand_color, org_name, footer_text, logo_id, logo_sha256, logo_width, logo_height)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (org_id) do update set brand_color = excluded.brand_color, org_name = excluded.org_name,
       footer_text = excluded.footer_text, logo_id = excluded.logo_id, logo_sha256 = excluded.logo_sha256,
       logo_width = excluded.logo_width, logo_height = excluded.logo_height, updated_at = now()`,
    [
      inside.orgId,
      brandColor,
      orgName,
      footerText,
      logo?.id ?? null,
      logo?.sha256 ?? null,
      logo?.width ?? null,
      logo?.height ?? null,
    ],
  );
}

/** The file of a logo. */
export interface LogoName {
  orgId: string;
  id: string;
}

/** Of these the ones that no organization shows. */
export async function listReplacedLogos(database: Database, names: readonly LogoName[]): Promise<LogoName[]> {
  return unscoped(database, 'files of replaced logos are removed, whosever they were', (system) =>
    system.rows<LogoName>(
      `select n.org_id as "orgId", n.id from unnest($1::uuid[], $2::uuid[]) n (org_id, id)
       where not exists (select from branding b where b.org_id = n.org_id and b.logo_id = n.id)`,
      [plainArray(names.map(({ orgId }) => orgId)), plainArray(names.map(({ id }) => id))],
    ),
  );
}
