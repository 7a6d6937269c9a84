import type pg from 'pg';
import { formatUuid } from '../../../domain/ids.js';
import type { Rehearsed } from './rehearsal.js';
import { readTenantRows } from './tenantRows.js';

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const ID = new RegExp(`${UUID.source}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])|key_[0-9A-Za-z]{10}`, 'g');
/** Larger numbers are times in microseconds or longer counts of picodollars; only a new row has a new one. */
const TIME = /(?<![0-9.])1[0-9]{15}n?(?![0-9])/g;

/** Everything in a value as one text: of rows, maps, sets and bytes too. */
export function textOf(value: unknown): string {
  if (value instanceof Map || value instanceof Set) return textOf([...value]);
  if (Buffer.isBuffer(value)) return JSON.stringify(value.toString('latin1'));
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`;
  if (value instanceof Error)
    return `${value.name} ${(value as { code?: string }).code ?? ''} ${value.message}`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, part]) => `${name}:${textOf(part)}`)
      .join(',')}}`;
  return typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? 'undefined');
}

/** The result of a function, without generated parts: ids and times. */
export function comparable({ given, thrown }: Rehearsed): string {
  if (thrown !== undefined) return `throws ${textOf(thrown)}`;
  return textOf(given).replace(ID, '<id>').replace(TIME, '<time>');
}

/** Ids in a text; public ones in the form of the rows'. */
function idsIn(text: string): string[] {
  return [...text.matchAll(ID)].map(([id]) => (/^[0-9a-f]{32}$/.test(id) ? formatUuid(id) : id));
}

/** Whether row-level security itself has refused a row. */
export function isRefusedByRowSecurity({ thrown }: Rehearsed): boolean {
  const { code, message } = (thrown ?? {}) as { code?: string; message?: string };
  return code === '42501' && /row-level security/.test(message ?? '');
}

/** Identifies an organization's data: the words that it stored, and the ids of its rows. */
export class Belongings {
  readonly #markers: readonly string[];
  readonly #ids: Set<string>;

  private constructor(markers: readonly string[], ids: Set<string>) {
    this.#markers = markers;
    this.#ids = ids;
  }

  /** Ids that are everybody's, or are named in the question, are none of its belongings. */
  static async read(
    superuser: pg.Pool,
    owner: { orgId: string; markers: readonly string[] },
    othersOrgIds: readonly string[],
  ): Promise<Belongings> {
    const idsOf = async (orgId: string) =>
      Object.values(await readTenantRows(superuser, orgId)).flatMap((rows) => rows.flatMap(idsIn));
    const ids = new Set(await idsOf(owner.orgId));
    ids.delete(owner.orgId);
    for (const orgId of othersOrgIds) for (const id of await idsOf(orgId)) ids.delete(id);
    return new Belongings(owner.markers, ids);
  }

  /** The data of the organization that a function returned or threw. */
  findIn({ given, thrown }: Rehearsed): string[] {
    return this.findInText(`${textOf(given)} ${textOf(thrown)}`);
  }

  findInText(text: string): string[] {
    const found = idsIn(text).filter((id) => this.#ids.has(id));
    return [...this.#markers.filter((marker) => text.includes(marker)), ...found];
  }
}
