import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { RenderLogo } from '../../adapters/logos/logoRenderer.js';
import { getOrganization, lockOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findBranding, upsertBranding } from '../../db/reports/branding.js';
import type { AuditDetails } from '../../domain/access/auditLog.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import {
  type Branding,
  type BrandingLogo,
  brandingOf,
  LOGO_BYTES_MAX,
  logoKey,
  type StoredBranding,
} from '../../domain/reports/branding.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { readBlob } from '../invoices/invoiceDeps.js';

export interface BrandingDeps {
  blobs: BlobStore;
  renderLogo: RenderLogo;
}

/** undefined: the field stays; null: it gets its default. */
export interface BrandingChange {
  brandColor?: string | null | undefined;
  orgName?: string | null | undefined;
  footerText?: string | null | undefined;
  /** The uploaded file. */
  logo?: Buffer | null | undefined;
}

/** Largest drawn logo, bytes: it may be larger than its file. */
const DRAWN_BYTES_MAX = 4 * LOGO_BYTES_MAX;

/** The branding of the organization's documents; `host` is the service's domain. */
export async function getBranding(orgDb: OrgDb, host: string): Promise<Branding> {
  return orgDb.transaction(async (inside) => {
    const { name } = await getOrganization(inside);
    return brandingOf(await findBranding(inside), name, host);
  });
}

/** The organization's logo and its bytes. Error: not_found without a logo. */
export async function openLogo(
  { blobs }: Pick<BrandingDeps, 'blobs'>,
  orgDb: OrgDb,
): Promise<{ logo: BrandingLogo; sizeBytes: number; stream: Readable }> {
  const logo = (await findBranding(orgDb))?.logo;
  if (!logo) throw new DomainError('not_found', 'the organization has no logo');
  return { logo, ...(await blobs.get(logoKey(orgDb.orgId, logo.id))) };
}

/** The bytes of a logo for a document; null without one. */
export async function readLogo(
  { blobs }: Pick<BrandingDeps, 'blobs'>,
  orgId: string,
  logo: BrandingLogo | null,
): Promise<Buffer | null> {
  return logo && readBlob(blobs, logoKey(orgId, logo.id));
}

/**
 * Changes the named fields. A logo is drawn again and stored as PNG before the transaction that names it; a file that no
 * row names is deleted, by the retention at the latest. Errors: invalid_logo, unsupported_media_type,
 * service_unavailable, storage_full.
 */
export async function changeBranding(
  deps: BrandingDeps,
  orgDb: OrgDb,
  change: BrandingChange,
  author: RequestAuthor,
  nowMicros: bigint,
): Promise<void> {
  const { blobs } = deps;
  const logo = change.logo ? await storeLogo(deps, orgDb.orgId, change.logo, nowMicros) : change.logo;
  const fileOf = (one: BrandingLogo) => logoKey(orgDb.orgId, one.id);
  try {
    const replaced = await orgDb.transaction((inside) => storeChange(inside, { ...change, logo }, author));
    if (replaced) await blobs.delete(fileOf(replaced)).catch(() => undefined);
  } catch (error) {
    if (logo) await blobs.delete(fileOf(logo)).catch(() => undefined);
    throw error;
  }
}

async function storeLogo(
  { blobs, renderLogo }: BrandingDeps,
  orgId: string,
  file: Buffer,
  nowMicros: bigint,
): Promise<BrandingLogo> {
  const { png, width, height } = await renderLogo(file);
  const id = newUuid(nowMicros);
  await blobs.put(logoKey(orgId, id), bytesOf(png), { bytesMax: DRAWN_BYTES_MAX });
  return { id, sha256: createHash('sha256').update(png).digest('hex'), width, height };
}

async function* bytesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const UNSET: StoredBranding = { brandColor: null, orgName: null, footerText: null, logo: null };

/** Stores a change; returns the logo that it replaced, if any. */
async function storeChange(
  inside: OrgDb,
  change: Omit<BrandingChange, 'logo'> & { logo?: BrandingLogo | null | undefined },
  author: RequestAuthor,
): Promise<BrandingLogo | null> {
  // The lock orders changes: each keeps the fields that it does not name.
  await lockOrganization(inside);
  const before = (await findBranding(inside)) ?? UNSET;
  const after: StoredBranding = {
    brandColor: change.brandColor === undefined ? before.brandColor : change.brandColor,
    orgName: change.orgName === undefined ? before.orgName : change.orgName,
    footerText: change.footerText === undefined ? before.footerText : change.footerText,
    logo: change.logo === undefined ? before.logo : change.logo,
  };
  const details = describeChange(before, after);
  if (details === undefined) return null;
  await upsertBranding(inside, after);
  const subject = { type: 'organization', id: publicId('org', inside.orgId) };
  await recordAction(inside, author, 'branding.changed', subject, details);
  return before.logo?.id === after.logo?.id ? null : before.logo;
}

const FIELDS = { brandColor: 'brand_color', orgName: 'org_name', footerText: 'footer_text' } as const;

/** The details for the audit log; undefined: nothing changes. */
function describeChange(before: StoredBranding, after: StoredBranding): AuditDetails | undefined {
  const details: { [name: string]: AuditDetails[string] } = {};
  const fields: string[] = [];
  for (const [name, field] of Object.entries(FIELDS) as [keyof typeof FIELDS, string][]) {
    if (before[name] === after[name]) continue;
    fields.push(field);
    details[`old_${field}`] = before[name];
    details[`new_${field}`] = after[name];
  }
  if (before.logo?.id !== after.logo?.id) {
    fields.push('logo');
    details.old_logo_sha256 = before.logo?.sha256 ?? null;
    details.new_logo_sha256 = after.logo?.sha256 ?? null;
  }
  return fields.length === 0 ? undefined : { fields, ...details };
}
