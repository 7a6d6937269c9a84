import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unpack, verifyPack } from '../../../bin/evidence/verifyPack.js';
import { canonicalJson, packManifest } from '../../../domain/claims/evidence/claimCsv.js';
import type { ClaimEvidence } from '../../../domain/claims/evidence/claimEvidence.js';
import { picoFromDecimal } from '../../../domain/money.js';
import { packBytes } from '../../../platform/archive/archiveWriter.js';
import type { TestApi } from '../../support/api.js';
import { startTypeScript } from '../../support/childProgram.js';
import { type ClaimedDemo, startClaimedDemo } from '../../support/claimedDemo.js';
import { pdfTextOf } from '../../support/pdfText.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { makeTestFolder } from '../../support/testFolder.js';

/** Claims over the demo's planted mistakes, created and shown by the API, and verified from their packs alone. */

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

let api: TestApi;
let claimed: ClaimedDemo;
/** A claim over each claimable dispute, by the dispute's kind. */
const claims = new Map<string, Json>();

beforeAll(async () => {
  claimed = await startClaimedDemo();
  ({ api } = claimed);
  for (const dispute of claimed.disputes) {
    const key = claimed.organization.adminKey;
    const { status, body } = await api.post('/api/v1/claims', { dispute_ids: [dispute.id] }, key);
    if (status === 201) claims.set(`${dispute.kind} ${dispute.model}`, body);
  }
}, 300_000);

afterAll(() => claimed?.close());

const pathOf = (claim: Json, extension: string) => `/api/v1/claims/${claim.id}/evidence.${extension}`;

async function fetchFile(claim: Json, extension: string, key = claimed.organization.adminKey) {
  const response = await fetch(`${api.baseUrl}${pathOf(claim, extension)}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

const pico = (text: string) => picoFromDecimal(text) ?? 0n;
const sumOf = <T>(list: readonly T[], of: (one: T) => string) =>
  list.reduce((total, one) => total + pico(of(one)), 0n);

describe('the evidence of a claim', () => {
  it('foots: lines to days, days to disputes, disputes less what is netted to the cents that are asked for', () => {
    expect(claims.size).toBeGreaterThan(7);
    for (const claim of claims.values()) {
      const evidence: ClaimEvidence = claim.evidence;
      const lines = sumOf(evidence.cells, (cell) => cell.difference_usd_exact);
      expect(lines).toBe(sumOf(evidence.disputes, (one) => one.difference_usd_exact));
      const netted = sumOf(evidence.undercharges, (one) => one.difference_usd_exact);
      expect(pico(evidence.totals.recoverable_usd_exact)).toBe(lines + netted);
      expect(Number((lines + netted) / 10_000_000_000n)).toBe(claim.total_recoverable_cents);
    }
  });

  it('shows each line on the pages and recomputes it by quantity and rate, except for keys without a name', () => {
    for (const [kind, { evidence }] of claims) {
      const stated = evidence.cells.filter(({ basis }: Json) => basis === 'stated');
      if (kind.startsWith('unauthorized')) expect(stated).toHaveLength(evidence.cells.length);
      else expect([kind, stated.length, evidence.notes]).toEqual([kind, 0, []]);
      expect(evidence.cells.every(({ rows }: Json) => rows.length > 0)).toBe(true);
      expect(evidence.source_pages.every(({ kept }: Json) => kept === 'whole')).toBe(true);
    }
  });

  it('shows what the provider’s own usage report counts where the bill counts more', () => {
    const doubled = [...claims].filter(([kind]) => kind.startsWith('duplicate_charge'));
    expect(doubled.length).toBeGreaterThan(0);
    for (const [, { evidence }] of doubled) {
      expect(new Set(evidence.source_pages.map(({ filename }: Json) => filename)).size).toBeGreaterThan(1);
      for (const cell of evidence.cells) {
        expect(BigInt(cell.usage_report_quantity)).toBeGreaterThan(0n);
        expect([cell.token_class, cell.usage_report_quantity]).toEqual([
          cell.token_class,
          cell.right_quantity,
        ]);
      }
    }
  });

  it('divides a count of short and long requests over the lines that charge for them', () => {
    const { evidence } = claims.get('duplicate_charge gpt-6-sol');
    const output = evidence.cells.filter(({ token_class }: Json) => token_class === 'output');
    expect(output.map(({ long_context }: Json) => long_context).sort()).toEqual([false, true]);
    const parts = sumOf(output, (cell: Json) => cell.usage_report_quantity);
    for (const cell of output) expect(pico(cell.usage_report_total_quantity)).toBe(parts);
  });

  it('names rates with their sources, at least twenty calls where there are any, and the engine that found it', () => {
    for (const [kind, { evidence }] of claims) {
      expect(evidence.hypothesis.type).toBe(kind.split(' ')[0]);
      expect(evidence.samples.length).toBeGreaterThanOrEqual(Math.min(20, evidence.events.total));
      if (evidence.cells.some(({ basis }: Json) => basis === 'rates'))
        expect(evidence.pricing_snapshot.rates.length).toBeGreaterThan(0);
      for (const rate of evidence.pricing_snapshot.rates) {
        expect(rate.contract ?? rate.source_keys.length).toBeTruthy();
        if (rate.contract === null) continue;
        expect(rate.contract_discount_percent).toBe('12');
        expect(rate.usd_per_mtok).toBeCloseTo(Number(rate.list_usd_per_mtok_exact) * 0.88, 9);
      }
      const modelOf = new Map(evidence.pricing_snapshot.rates.map(({ id, model }: Json) => [id, model]));
      for (const { model, parts } of evidence.cells)
        for (const { rate } of parts) expect(modelOf.get(rate)).toBe(model);
      expect([evidence.engine_version, evidence.weight_set_version]).toEqual([
        expect.stringMatching(/^\d/),
        'default-1',
      ]);
    }
  });

  it('is hashed over its canonical text, the same in the claim, in the file and after a trip through the database', async () => {
    for (const claim of [...claims.values()].slice(0, 2)) {
      const { sha256, ...rest } = claim.evidence;
      const hash = createHash('sha256').update(canonicalJson(rest)).digest('hex');
      expect([sha256, claim.evidence_sha256]).toEqual([hash, hash]);
      const { bytes } = await fetchFile(claim, 'json');
      expect(JSON.parse(bytes.toString('utf8'))).toEqual(claim.evidence);
    }
  });

  it('contains no prompt, no key and no person', async () => {
    const [claim] = claims.values();
    const files = await filesOf(claim);
    const event = JSON.parse((files.get('events.jsonl') ?? '').toString('utf8').split('\n')[0] ?? '');
    expect(Object.keys(event).sort()).toEqual(
      [
        ...['id', 'day', 'model', 'timestamp', 'end_at', 'request_id', 'provider_key_id', 'called_model'],
        ...[
          'response_model',
          'service_tier',
          'is_batch',
          'long_context',
          'status',
          'http_status',
          'tokens',
          'usage',
        ],
      ].sort(),
    );
  });
});

describe('the files of a claim', () => {
  it('are a pack that checks itself, one of each kind, the same bytes each time', async () => {
    const ofKinds = new Map([...claims].map(([kind, claim]) => [kind.split(' ')[0], claim]));
    for (const claim of ofKinds.values()) {
      const { status, headers, bytes } = await fetchFile(claim, 'tar.gz');
      expect([status, headers.get('content-type')]).toEqual([200, 'application/gzip']);
      const { differences, checks } = verifyPack(unpack('pack', bytes));
      expect(differences.map(({ file, line, message }) => `${file}:${line} ${message}`)).toEqual([]);
      expect(checks.length).toBeGreaterThan(9);
      expect((await fetchFile(claim, 'tar.gz')).bytes.equals(bytes)).toBe(true);
    }
  }, 300_000);

  it('have a document whose text layer contains every id, file name and hash unbroken', async () => {
    const ofKinds = new Map([...claims].map(([kind, claim]) => [kind.split(' ')[0], claim]));
    for (const [kind, claim] of ofKinds) {
      const { joined } = await pdfTextOf((await fetchFile(claim, 'pdf')).bytes);
      const evidence: ClaimEvidence = claim.evidence;
      const texts = [
        ...[claim.id, evidence.claim.provider_account_id, evidence.sha256, `${claim.id}-evidence.tar.gz`],
        ...evidence.disputes.map(({ model }) => model),
        ...evidence.source_pages.flatMap(({ file, sha256 }) => [file, sha256]),
        ...evidence.samples.slice(0, 1).map(({ request_id }) => request_id ?? ''),
      ];
      expect([kind, texts.filter((text) => !joined.includes(text))]).toEqual([kind, []]);
      expect([kind, joined.match(/\p{Cf}/gu)]).toEqual([kind, null]);
    }
  });

  it('have a document and a table, as attachments', async () => {
    const [claim] = claims.values();
    const pdf = await fetchFile(claim, 'pdf');
    expect(pdf.bytes.subarray(0, 5).toString()).toBe('%PDF-');
    expect(pdf.headers.get('content-disposition')).toBe(`attachment; filename="${claim.id}-evidence.pdf"`);
    const csv = (await fetchFile(claim, 'csv')).bytes.toString('utf8').trim().split('\r\n');
    expect(csv).toHaveLength(claim.evidence.cells.length + claim.evidence.undercharges.length + 3);
    expect(csv.at(-2)).toContain(`,${claim.evidence.totals.recoverable_usd_exact},`);
    expect(csv.at(-1)).toMatch(/,credit requested,/);
    expect(csv.at(-1)).toContain(`,${(claim.total_recoverable_cents / 100).toFixed(2)},`);
  });

  it('are not shown to another organization', async () => {
    const other = await api.addOrganization();
    for (const extension of ['json', 'csv', 'pdf', 'tar.gz'])
      for (const claim of [...claims.values()].slice(0, 1))
        expect((await fetchFile(claim, extension, other.adminKey)).status).toBe(404);
  });
});

/** The files of a claim's pack. */
async function filesOf(claim: Json): Promise<Map<string, Buffer>> {
  return unpack('pack', (await fetchFile(claim, 'tar.gz')).bytes);
}

describe('the pack checker, given a pack with a changed digit', () => {
  let files: Map<string, Buffer>;

  beforeAll(async () => {
    const claim = [...claims].find(([kind]) => kind.startsWith('cache_read_rate_mismatch'))?.[1];
    files = await filesOf(claim);
  }, 300_000);

  it('refuses the pack, whichever digit of whichever file changed', () => {
    const names = [...files.keys()];
    fc.assert(
      fc.property(fc.nat(names.length - 1), fc.nat(), fc.integer({ min: 1, max: 9 }), (at, place, by) => {
        const name = names[at] ?? '';
        const changed = withDigit(files.get(name) ?? Buffer.alloc(0), place, by);
        const { differences } = verifyPack(new Map(files).set(name, changed));
        expect(differences.length).toBeGreaterThan(0);
      }),
      { numRuns: propertyRuns(6) },
    );
  }, 300_000);

  it('refuses the pack when its hashes are computed anew, for every number that the claim follows from', () => {
    const claim = JSON.parse((files.get('claim.json') ?? '').toString()) as ClaimEvidence;
    const forgeries = fc.oneof(
      fc.nat(claim.cells.length - 1).map((at) => ({ of: 'page' as const, at })),
      fc.nat(claim.events.included - 1).map((at) => ({ of: 'call' as const, at })),
      fc.nat(claim.pricing_snapshot.rates.length - 1).map((at) => ({ of: 'rate' as const, at })),
      fc.constantFrom(...Object.keys(claim.totals)).map((name) => ({ of: 'total' as const, name })),
      fc.nat(claim.cells.length - 1).map((at) => ({ of: 'cell' as const, at })),
    );
    fc.assert(
      fc.property(forgeries, (forgery) => {
        const forged = new Map(files);
        forge(forged, claim, forgery);
        sealAgain(forged);
        const { differences } = verifyPack(forged);
        expect([forgery, differences.length > 0]).toEqual([forgery, true]);
        // The numbers decide: no hash is wrong.
        expect(differences.some(({ message }) => message.includes('sha256'))).toBe(false);
      }),
      { numRuns: propertyRuns(6) },
    );
  }, 300_000);

  it('refuses the pack when a line has another part of the usage report, and whole in the older form', async () => {
    const claim = claims.get('duplicate_charge gpt-6-sol');
    const pack = await filesOf(claim);
    const verified = (change: (cell: Json, at: number) => void) => {
      const changed = new Map(pack);
      const value = JSON.parse((pack.get('claim.json') ?? '').toString());
      value.cells.forEach(change);
      changed.set('claim.json', Buffer.from(JSON.stringify(value, null, 1)));
      sealAgain(changed);
      return verifyPack(changed).differences.map(({ message }) => message);
    };
    const another = verified((cell, at) => {
      if (at === 0) cell.usage_report_quantity = `${BigInt(cell.usage_report_quantity) + 1n}`;
    });
    expect(another).toEqual([expect.stringContaining('the parts of its lines come to')]);
    const older = verified((cell) => {
      cell.usage_report_quantity = cell.usage_report_total_quantity;
      delete cell.usage_report_total_quantity;
    });
    expect(older).toEqual([]);
  });

  it('names the file and line, and fails with its exit code', async () => {
    const name = 'pages/001-openai-costs.json';
    const page = (files.get(name) ?? '').toString();
    const claim = JSON.parse((files.get('claim.json') ?? '').toString()) as ClaimEvidence;
    const forged = new Map(files);
    forge(forged, claim, { of: 'page', at: 0 });
    sealAgain(forged);
    expect(forged.get(name)?.toString()).not.toBe(page);
    const folder = makeTestFolder('packs');
    try {
      const run = async (pack: ReadonlyMap<string, Buffer>) => {
        const path = join(folder, 'evidence.tar.gz');
        writeFileSync(
          path,
          await packBytes(
            [...pack].map(([one, bytes]) => ({ name: one, bytes })),
            0,
          ),
        );
        const program = startTypeScript('bin/trueup.ts', ['evidence', 'verify', path]);
        return { code: await program.ended(), output: program.stdout() };
      };
      const whole = await run(files);
      expect([whole.code, whole.output]).toEqual([
        0,
        expect.stringContaining('Everything in the pack agrees'),
      ]);
      const other = await run(forged);
      expect([other.code, other.output]).toEqual([
        1,
        expect.stringMatching(/DIFFERENCE claim\.json, line \d+: page_usd_exact is .* come to /),
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 300_000);
});

type Forgery = { of: 'page' | 'call' | 'rate' | 'cell'; at: number } | { of: 'total'; name: string };

/** Changes one number that the claim follows from, in any place. */
function forge(files: Map<string, Buffer>, claim: ClaimEvidence, forgery: Forgery): void {
  const edit = (name: string, change: (value: Json) => void) => {
    const value = JSON.parse((files.get(name) ?? '').toString());
    change(value);
    files.set(name, Buffer.from(JSON.stringify(value, null, 1)));
  };
  if (forgery.of === 'total') {
    edit('claim.json', ({ totals }) => {
      const value = totals[forgery.name];
      totals[forgery.name] =
        typeof value === 'number' ? value + 1 : `${value.includes('.') ? value : `${value}.`}1`;
    });
  } else if (forgery.of === 'cell') {
    edit('claim.json', ({ cells }) => {
      cells[forgery.at].right_quantity = `${BigInt(cells[forgery.at].right_quantity) - 1n}`;
    });
  } else if (forgery.of === 'rate') {
    const dearer = (rates: Json[]) => {
      const rate = rates[forgery.at];
      rate.usd_per_mtok_exact = `${Number(rate.usd_per_mtok_exact) / 2}`;
      rate.usd_per_mtok = Number(rate.usd_per_mtok_exact);
    };
    edit('claim.json', ({ pricing_snapshot }) => dearer(pricing_snapshot.rates));
    edit('rates.json', ({ rates }) => dearer(rates));
  } else if (forgery.of === 'call') {
    const lines = (files.get('events.jsonl') ?? '').toString().split('\n');
    const call = JSON.parse(lines[forgery.at] ?? '');
    call.tokens.input += 1;
    lines[forgery.at] = JSON.stringify(call);
    files.set('events.jsonl', Buffer.from(lines.join('\n')));
  } else {
    const row = claim.cells[forgery.at]?.rows[0];
    const text = (files.get(row?.page ?? '') ?? '').toString();
    const documents = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    let holder = documents[row?.document ?? 0];
    for (const part of (row?.at ?? '').slice(1).split('/')) holder = holder[part];
    holder.amount.value = Number(holder.amount.value) + 1;
    files.set(row?.page ?? '', Buffer.from(documents.map((one) => JSON.stringify(one)).join('\n')));
  }
}

/** Corrects every hash of a forged pack. */
function sealAgain(files: Map<string, Buffer>): void {
  const claim = JSON.parse((files.get('claim.json') ?? '').toString());
  for (const page of claim.source_pages) {
    const bytes = files.get(page.file) ?? Buffer.alloc(0);
    page.bytes = bytes.length;
    page.sha256 = sha256Of(bytes);
  }
  const { sha256: _, ...rest } = claim;
  const evidenceSha256 = sha256Of(Buffer.from(canonicalJson(rest)));
  files.set('claim.json', Buffer.from(JSON.stringify({ ...rest, sha256: evidenceSha256 }, null, 1)));
  const before = JSON.parse((files.get('manifest.json') ?? '').toString());
  const listed = before.files.map(({ path, media_type }: Json) => {
    const bytes = files.get(path) ?? Buffer.alloc(0);
    return { name: path, mediaType: media_type, sizeBytes: bytes.length, sha256: sha256Of(bytes) };
  });
  files.set('manifest.json', Buffer.from(packManifest({ claimId: claim.claim.id, evidenceSha256 }, listed)));
}

const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** The bytes with one of their digits another one. */
function withDigit(bytes: Buffer, place: number, by: number): Buffer {
  const digits = [...bytes.keys()].filter((at) => isDigit(bytes[at]));
  const at = digits[place % digits.length] ?? 0;
  const changed = Buffer.from(bytes);
  changed[at] = 48 + (((bytes[at] ?? 48) - 48 + by) % 10);
  return changed;
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 48 && byte <= 57;
