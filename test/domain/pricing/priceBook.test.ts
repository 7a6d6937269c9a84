import { describe, expect, it } from 'vitest';
import { PriceBook } from '../../../domain/pricing/priceBook.js';
import { familyNames, fineTunedBase } from '../../../domain/pricing/pricedModel.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import type { Provider } from '../../../domain/providers.js';
import { AS_OF, aPeriod, bookOf, listOf, microsOf, shippedBook, shippedJson } from './support.js';

const book = shippedBook();
const json = shippedJson();

function found(provider: Provider, id: string, atMicros = AS_OF) {
  const priced = book.find(provider, id, atMicros);
  return priced && `${priced.entry.model} ${priced.matchedBy}`;
}

describe('finding a price', () => {
  it('finds every id of the list by itself, at every time that its periods cover', () => {
    for (const entry of json.models) {
      for (const id of [entry.model, ...entry.aliases]) {
        for (const period of entry.rates) {
          const at = period.effective_from ?? '2020-01-01';
          const priced = book.find(entry.provider as Provider, id, microsOf(at));
          expect(priced?.entry.model, `${entry.provider} ${id} ${at}`).toBe(entry.model);
          expect(priced?.version.effectiveFrom).toBe(period.effective_from);
          expect(priced?.matchedBy).toBe('exact');
        }
      }
    }
  });

  it('changes a price with the first microsecond of the day that it takes effect', () => {
    const at = (iso: string) => book.find('openai', 'o3', microsOf(iso))?.version.rates.input;
    expect(at('2025-06-09T23:59:59.999999Z')).toBe(10_000_000_000_000n);
    expect(at('2025-06-10T00:00:00Z')).toBe(2_000_000_000_000n);
  });

  it('cuts what a fine-tuned model’s id adds to its base', () => {
    expect(found('openai', 'ft:gpt-4o-2024-08-06:org::x')).toBe('ft:gpt-4o-2024-11-20 fine_tuned');
    expect(found('openai', 'ft:gpt-3.5-turbo:acme:suffix:abc:ckpt-step-90')).toBe(
      'ft:gpt-3.5-turbo fine_tuned',
    );
    expect(fineTunedBase('gpt-4o')).toBeUndefined();
    expect(fineTunedBase('ft:gpt-4o')).toBeUndefined();
    expect(fineTunedBase('anthropic.claude-v2:1:18k')).toBeUndefined();
  });

  it('prices a dated, regional or numbered id by its family, when the family has one price', () => {
    expect(found('anthropic', 'claude-sonnet-4-5-20991231')).toBe('claude-sonnet-4-5 family');
    expect(found('anthropic', 'claude-sonnet-4-6-latest')).toBe('claude-sonnet-4-6 family');
    expect(found('google', 'gemini-2.5-flash-001')).toBe('gemini-2.5-flash family');
    expect(found('openai', 'gpt-4.1-001')).toBeUndefined();
    expect(found('google', 'models/gemini-2.5-flash')).toBe('gemini-2.5-flash exact');
    expect(found('aws_bedrock', 'ca.amazon.nova-premier-v1:0')).toBe('amazon.nova-premier-v1:0 family');
  });

  it('prices an id of a gateway, which writes a version with a dot or a dash unlike the maker', () => {
    expect(found('anthropic', 'anthropic/claude-sonnet-4.5')).toBe('claude-sonnet-4-5 family');
    expect(found('anthropic', 'claude-sonnet-4.5')).toBe('claude-sonnet-4-5 family');
    expect(found('anthropic', 'claude-sonnet-4.5-20250929')).toBe('claude-sonnet-4-5 family');
    expect(found('google', 'google/gemini-2-5-flash')).toBe('gemini-2.5-flash family');
    expect(book.inferProvider('claude-sonnet-4.5')).toBe('anthropic');
    expect(book.findByMaker('anthropic/claude-sonnet-4.5', AS_OF)?.entry.model).toBe('claude-sonnet-4-5');
  });

  it('takes no two families of one provider for one, however their versions are written', () => {
    const written = new Map<string, Set<string>>();
    for (const { provider, canonical_family: family } of json.models) {
      const key = `${provider} ${family.replace(/(?<=\d)\.(?=\d)/g, '-')}`;
      written.set(key, (written.get(key) ?? new Set()).add(family));
    }
    const shared = [...written.values()].filter((families) => families.size > 1);
    expect(shared.map((families) => [...families])).toEqual([]);
  });

  it('leaves an id of a family with several prices without one, and states why', () => {
    expect(found('openai', 'gpt-4o-2099-01-01')).toBeUndefined();
    expect(book.whyMissing('openai', 'gpt-4o-2099-01-01', AS_OF)).toBe('several_prices');
    expect(book.whyMissing('openai', 'no-such-model', AS_OF)).toBe('unknown_model');
    expect(book.whyMissing('openai', 'gpt-4o', AS_OF)).toBeUndefined();
  });

  it('takes a family’s one price even where two entries carry it', () => {
    const list = (second: number) =>
      bookOf(
        readPriceFile(
          listOf([
            { provider: 'openai', model: 'm-2024-01-01', canonical_family: 'm' },
            {
              provider: 'openai',
              model: 'm-2025-01-01',
              canonical_family: 'm',
              rates: [aPeriod({ input: second, output: 2 })],
            },
          ]),
        ),
      );
    expect(list(1).find('openai', 'm-2026-01-01', AS_OF)?.entry.model).toBe('m-2024-01-01');
    expect(list(1.5).find('openai', 'm-2026-01-01', AS_OF)).toBeUndefined();
  });

  it('states that a known model had no price at a time before its first dated one', () => {
    const dated = bookOf(
      readPriceFile(
        listOf([
          {
            provider: 'openai',
            model: 'm',
            rates: [aPeriod({ input: 1, output: 2 }, { effective_from: '2026-01-01' })],
          },
        ]),
      ),
    );
    expect(dated.whyMissing('openai', 'm', microsOf('2025-12-31'))).toBe('no_price_then');
    expect(dated.find('openai', 'm', microsOf('2025-12-31'))).toBeUndefined();
    expect(dated.whyMissing('openai', 'm', microsOf('2026-01-01'))).toBeUndefined();
  });

  it('looks through paths, ARNs and a prefix that names the same provider, but not another one', () => {
    const arn =
      'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0';
    expect(found('aws_bedrock', arn)).toBe('us.anthropic.claude-sonnet-4-5-20250929-v1:0 exact');
    expect(found('openai', 'openai/gpt-4o')).toBe('gpt-4o exact');
    expect(found('google', 'publishers/google/models/gemini-2.5-pro')).toBe('gemini-2.5-pro exact');
    expect(found('anthropic', 'openai/gpt-4o')).toBeUndefined();
    expect(found('openai', 'anthropic/claude-sonnet-4-5')).toBeUndefined();
    expect(found('openai', 'azure/gpt-4o')).toBeUndefined();
    expect(found('anthropic', 'mistral/claude-sonnet-4-5')).toBeUndefined();
  });

  it('does not mind case and blanks around an id', () => {
    expect(found('openai', ' GPT-4o ')).toBe('gpt-4o exact');
  });

  it('survives ids made to waste its time and its memory', () => {
    expect(found('aws_bedrock', `us.${'a.'.repeat(50_000)}b-v1:0`)).toBeUndefined();
    for (let i = 0; i < 45_000; i += 1) book.find('openai', `junk-${i}`, AS_OF);
    expect(found('openai', 'gpt-4o')).toBe('gpt-4o exact');
  });
});

describe('families', () => {
  it('strips an id of the list to its own family or to none that the provider has, never to another', () => {
    const families = new Map<string, Set<string>>();
    for (const entry of json.models) {
      const known = families.get(entry.provider) ?? new Set<string>();
      families.set(entry.provider, known.add(entry.canonical_family));
    }
    let stripped = 0;
    for (const entry of json.models) {
      for (const id of [entry.model, ...entry.aliases]) {
        const family = familyNames(entry.provider as Provider, id).find((name) =>
          families.get(entry.provider)?.has(name),
        );
        expect([entry.canonical_family, undefined], `${entry.provider} ${id}`).toContain(family);
        if (family !== undefined) stripped += 1;
      }
    }
    expect(stripped).toBeGreaterThan(850);
  });

  it('map a model to one name however a bill or a call writes it', () => {
    expect(book.canonicalModel('anthropic', 'claude-sonnet-4-0')).toBe('claude-sonnet-4');
    expect(book.canonicalModel('anthropic', 'claude-sonnet-4-20250514')).toBe('claude-sonnet-4');
    expect(book.canonicalModel('aws_bedrock', 'eu.anthropic.claude-sonnet-4-20250514-v1:0')).toBe(
      'claude-sonnet-4',
    );
    expect(book.canonicalModel('openai', 'gpt-4o-2024-05-13')).toBe('gpt-4o');
    expect(book.canonicalModel('openai', 'gpt-4o-2099-01-01')).toBe('gpt-4o');
    expect(book.canonicalModel('azure_openai', 'gpt-35-turbo-0613')).toBe('gpt-3.5-turbo');
    expect(book.canonicalModel('openai', 'My-Deployment')).toBe('My-Deployment');
  });
});

describe('inferring who makes a model', () => {
  it('names the only provider that lists the id as its own', () => {
    for (const entry of json.models.filter((one) => one.first_party)) {
      for (const id of [entry.model, ...entry.aliases])
        expect(book.inferProvider(id), id).toBe(entry.provider);
    }
    expect(book.inferProvider('gpt-4o-2099-01-01')).toBe('openai');
    expect(book.inferProvider('ft:gpt-4o-2024-08-06:org::x')).toBe('openai');
    expect(book.inferProvider('models/gemini-2.5-pro')).toBe('google');
  });

  it('does not guess for resold, unknown or shared ids', () => {
    expect(book.inferProvider('us.anthropic.claude-sonnet-4-5-20250929-v1:0')).toBeUndefined();
    expect(book.inferProvider('deepseek-chat')).toBeUndefined();
    expect(book.inferProvider('')).toBeUndefined();
    const shared = bookOf(
      readPriceFile(
        listOf([
          { provider: 'openai', model: 'm' },
          { provider: 'mistral', model: 'm' },
        ]),
      ),
    );
    expect(shared.inferProvider('m')).toBeUndefined();
  });
});

describe('the version of the prices', () => {
  it('is named by time and content', () => {
    const state = { updatedAtMicros: microsOf('2026-11-20T10:11:12.345678Z'), contentHash: 'deadbeef01' };
    const named = (change: Partial<typeof state>) => PriceBook.from([], [], { ...state, ...change }).version;
    expect(named({})).toBe('20261120T101112345678Z-deadbeef');
    expect(named({ updatedAtMicros: microsOf('2026-11-20T10:11:12Z') })).toBe(
      '20261120T101112000000Z-deadbeef',
    );
  });

  it('changes when a dated price takes effect, though nothing was recorded', () => {
    const before = book.versionAt(microsOf('2026-11-30T23:59:59.999999Z'));
    const after = book.versionAt(microsOf('2026-12-01T00:00:00Z'));
    expect(before).not.toBe(after);
    expect(after).toMatch(/^20261201T000000000000Z-/);
    expect(book.versionAt(microsOf('2026-12-02T00:00:00Z'))).toBe(after);
  });
});
