import { describe, expect, it } from 'vitest';
import { renderClaimPdf } from '../../../adapters/typst/claimPdf.js';
import { Renderer } from '../../../adapters/typst/renderer.js';
import type { ClaimEvidence } from '../../../domain/claims/evidence/claimEvidence.js';
import { aClaimEvidence, aLine, aRate, HASH } from '../../support/claimEvidence.js';
import { type PdfText, pdfTextOf } from '../../support/pdfText.js';

const renderer = new Renderer();

async function textOf(evidence: ClaimEvidence): Promise<PdfText> {
  return pdfTextOf(await renderClaimPdf(renderer, evidence));
}

const firstPage = ({ pages }: PdfText): string => (pages[0]?.lines ?? []).map(({ text }) => text).join('\n');

const priceClaim = () => aClaimEvidence([aLine({ charged: '15', expected: '12' })]);

const CONTRACT = aRate({
  ...{ kind: 'contract', agreement: 'contract', source_keys: ['contract'], price_page_url: null },
  contract: { document: 'Order form DL-2026-017', clause: '3.2', url: null },
  ...{ contract_discount_percent: '12', list_usd_per_mtok_exact: '25' },
  ...{ usd_per_mtok: 22, usd_per_mtok_exact: '22', effective_from: '2026-09-08', retrieved_on: null },
});

const contractClaim = () => {
  const evidence = aClaimEvidence([aLine({ charged: '25', expected: '22' })], {
    dispute: {
      kind: 'contract_rate_not_applied',
      reason:
        'The list price was charged instead of the contract’s. The bill is $3.00 too much on 2026-10-06.',
    },
  });
  return { ...evidence, pricing_snapshot: { ...evidence.pricing_snapshot, rates: [CONTRACT] } };
};

const ROWS = [
  {
    ...{ page: 'pages/002-usage.json', document: 0, at: '/data/0/results/0', amount: null },
    ...{ quantity: [{ at: '/output_tokens', times: '1' }], fx_rate: null },
  },
];

/** A day charged twice: short and long requests, which the usage report counts together. */
const duplicateClaim = (report: object) => {
  const line = (quantity: string, right: string, isLong: boolean) =>
    aLine({
      ...{ charged: '49.50486', expected: '24.75243', rate_usd_exact: '0', volume_usd_exact: '24.75243' },
      ...{ billed_quantity: quantity, right_quantity: right, observed_quantity: right },
      ...{ long_context: isLong, usage_report_rows: ROWS },
      ...report,
    });
  return aClaimEvidence([line('4950486', '2475243', false), line('358800', '179400', true)], {
    dispute: {
      kind: 'duplicate_charge',
      reason:
        'The charge counts more than the provider’s own usage report does. The bill is $49.51 too much on 2026-10-06.',
    },
  });
};

describe('the text layer of a claim’s document', () => {
  it('contains every id, file name and hash unbroken, whatever its length', async () => {
    const long = 'x7b-'.repeat(30);
    const evidence = aClaimEvidence([aLine({ charged: '15', expected: '12', model: `mixtral-8${long}` })]);
    const account = `acct_${'0123456789abcdef'.repeat(8)}`;
    const [page] = evidence.source_pages;
    const [sample] = evidence.samples;
    if (!page || !sample) throw new Error('the evidence has a page and a sample');
    const url = `https://api.example.com/v1/organization/costs?start_time=1759708800&group_by[]=${'line_item,'.repeat(12)}`;
    const text = await textOf({
      ...evidence,
      claim: { ...evidence.claim, provider_account_id: account },
      source_pages: [{ ...page, file: `pages/001-${long}.json`, url }],
      samples: [{ ...sample, request_id: `req_${HASH}${HASH}` }],
    });
    for (const one of [
      ...[account, evidence.claim.id, `mixtral-8${long}`, HASH, evidence.sha256, `req_${HASH}${HASH}`],
      ...[`pages/001-${long}.json`, url, `${evidence.claim.id}-evidence.tar.gz`],
      'https://example.com/first/model_prices_and_context_window.json',
    ])
      expect(text.joined).toContain(one);
    expect(text.joined).not.toMatch(/\p{Cf}/u);
  });

  it('has one style of dates', async () => {
    const { joined, text } = await textOf(priceClaim());
    expect(text.match(/\b\d{4}-\d{2}-\d{2}\b/g)).toBeNull();
    expect(joined).toContain('30Jul2026');
  });
});

describe('the first page of a claim', () => {
  it('names both prices and the effective date of a price claim', async () => {
    const page = firstPage(await textOf(priceClaim()));
    expect(page).toContain('The price from before 30 Jul 2026 was charged while the later one held.');
    expect(page).toMatch(/Rate charged List rate In force since/);
    expect(page).toMatch(/Output 15\.00 12\.00 30 Jul 2026/);
  });

  it('names contract, clause and percentage of a contract claim', async () => {
    const page = firstPage(await textOf(contractClaim()));
    expect(page).toContain(
      'Order form DL-2026-017, clause 3.2: 12 % off OpenAI’s list prices, since 8 Sep 2026',
    );
    expect(page).toMatch(/Rate charged Agreed rate In force since/);
  });

  it('shows amounts in cents that add up, and the sentence of a finding without an amount of its own', async () => {
    const lines = [
      aLine({ charged: '13.6987398', expected: '6.8493699' }),
      aLine({ charged: '100.005', expected: '50.0025', dispute_id: 'dsp_2' }),
    ];
    const page = firstPage(await textOf(aClaimEvidence(lines)));
    expect(page.match(/\$[\d,]+\.\d{3,}/g)).toBeNull();
    expect(page).toContain('Charged on the disputed lines $113.70');
    expect(page).toContain('Right charge for the same lines $56.85');
    expect(page).toContain('Credit requested $56.85');
    expect(page).not.toContain('$3.01');
  });
});

describe('the lines of a claim', () => {
  it('are headed “Agreed rate” under a contract and “List rate” otherwise', async () => {
    const [list, agreed] = [await textOf(priceClaim()), await textOf(contractClaim())];
    expect(list.joined).toContain('Listrate');
    expect(list.joined).not.toContain('Agreedrate');
    expect(agreed.joined).toContain('Agreedrate');
    expect(agreed.joined).not.toMatch(/Listrate(?!s)/);
  });

  it.each([
    ['new', { usage_report_quantity: '2654643' }],
    ['stored', { usage_report_quantity: '2654643', usage_report_total_quantity: undefined }],
  ])(
    'show their own part of a usage report that counts them together, of %s evidence',
    async (_name, report) => {
      const { text } = await textOf(duplicateClaim(report));
      expect(text).toMatch(/^Output 4,950,486 2,475,243 2,475,243 /m);
      expect(text).toMatch(/^Output, long context 358,800 179,400 179,400 /m);
      expect(text).toMatch(/^Usage report 2,475,243 tokens .*counts 2,654,643 in one sum with/m);
      expect(text).not.toMatch(/^Usage report 2,654,643/m);
    },
  );
});

describe('the support of a claim', () => {
  it('is in words and figures, without bits, weights and probabilities', async () => {
    const duplicate = await textOf(duplicateClaim({ usage_report_quantity: '2654643' }));
    expect(duplicate.joined).toContain('counts2,654,643tokens.Thebillchargesexactlytwiceasmany.');
    const contract = await textOf(contractClaim());
    expect(contract.joined).toContain('units×listrate,withoutthe12%thatthecontracttakesoff.');
    const price = await textOf(priceClaim());
    expect(price.joined).toContain('1.25timesunits×listrate.');
    for (const { text } of [duplicate, contract, price])
      expect(text).not.toMatch(/\b(?:bits?|probable|probability|posterior|confidence|weights?|odds)\b/i);
  });

  it('names the verifier, where it is and how to run it', async () => {
    const { joined } = await textOf(priceClaim());
    for (const part of ['./trueup evidence verify clm_', 'Apache License 2.0', 'bin/evidence'])
      expect(joined).toContain(part.replaceAll(' ', ''));
  });
});

describe('the calls of a claim', () => {
  it('are of every disputed model, however few a model has', async () => {
    const evidence = priceClaim();
    const [sample] = evidence.samples;
    if (!sample) throw new Error('the evidence has a sample');
    const many = Array.from({ length: 40 }, (_, at) => ({
      ...sample,
      request_id: `req_of_a_busy_model_${at}`,
    }));
    const rare = { ...sample, model: 'gpt-rare', request_id: 'req_of_a_rare_model' };
    const { joined } = await textOf({ ...evidence, samples: [...many, rare] });
    expect(joined).toContain('req_of_a_rare_model');
    expect(joined.match(/req_of_a_busy_model_/g)).toHaveLength(23);
  });
});

describe('the pages of a claim', () => {
  /** Headings are recognised by their size; introductions and table headers by their words. */
  const INTRODUCTION =
    /^(?:Each line is|Rates\)\. Dollars|The largest line|Price effective date mismatch,|Day |Began )|own reports/;
  const isHeading = ({ size, text }: { size: number; text: string }) =>
    size >= 10.4 || INTRODUCTION.test(text);

  it('are numbered, and the first has the whole summary, of many findings of many kinds too', async () => {
    const lines = Array.from({ length: 40 }, (_, at) =>
      aLine({
        ...{ charged: `${15 + at}.123456789`, expected: '12', dispute_id: `dsp_${at % 20}` },
        model: `accounts/fireworks/models/a-model-of-number-${at % 20}`,
      }),
    );
    const evidence = aClaimEvidence(lines);
    const disputes = evidence.disputes.map((one, at) => ({
      ...one,
      kind: `fault_${at % 7}`,
      reason: `Fault of number ${at % 7} was made.`,
    }));
    const { pages } = await textOf({ ...evidence, disputes });
    expect(pages.map(({ lines: shown }) => shown.at(-1)?.text.split(' page ')[1])).toEqual(
      pages.map((_, at) => `${at + 1} of ${pages.length}`),
    );
    expect(pages[1]?.lines[1]?.text).toBe('What supports the claim');
  });

  it('never end with a heading, an introduction or the head of a table, wherever the breaks fall', async () => {
    for (const count of [4, 13, 19, 28, 34, 40, 52, 58]) {
      const day = (at: number) => new Date(Date.UTC(2026, 7, 1 + at)).toISOString().slice(0, 10);
      const lines = Array.from({ length: count }, (_, at) =>
        aLine({
          ...{ charged: '15', expected: '12', day: day(at % 31), dispute_id: `dsp_${at % 5}` },
          model: `model-${at % 5}`,
        }),
      );
      const { pages } = await textOf(aClaimEvidence(lines));
      expect(pages.length).toBeGreaterThan(2);
      for (const { lines: shown } of pages) {
        const last = shown.at(-2);
        expect(`${count} lines: ${last && isHeading(last) ? last.text : ''}`).toBe(`${count} lines: `);
      }
    }
  }, 120_000);

  it('are the same bytes each time, tagged and archivable', async () => {
    const [one, other] = [
      await renderClaimPdf(renderer, priceClaim()),
      await renderClaimPdf(renderer, priceClaim()),
    ];
    expect(one.equals(other)).toBe(true);
    for (const mark of ['/MarkInfo', 'pdfaid:part']) expect(one.toString('latin1')).toContain(mark);
  });
});
