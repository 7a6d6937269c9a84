/**
 * The family of a model id: what stays when vendor prefixes, regions, dates and revisions are taken off. Only for
 * the question whether two spans of one trace speak of one model; prices are found by the price book.
 */
const VENDOR_PREFIX =
  /^(?:(?:us-gov|us|eu|apac|jp|au|ca|global)\.)?(?:anthropic|amazon|openai|google|meta|mistral|cohere|deepseek|xai|ai21|qwen|zai|moonshotai)[./]/;
const DATE_SUFFIX = /[-@:](?:20\d{2}-?\d{2}-?\d{2}|\d{2}-20\d{2}|\d{2}-\d{2}|\d{4})$/;
const REVISION_SUFFIX = /(?:-v\d+(?::\d+)?|:\d+[a-z]*|-latest|-preview|-exp|-experimental|-\d{3})$/;
const DATED = /20\d{2}-?\d{2}-?\d{2}|[-@]\d{4}$/;

const cache = new Map<string, string>();
const CACHE_ENTRIES_MAX = 2_000;

/** e.g. `us.anthropic.claude-sonnet-4-5-20250929-v1:0` and `claude-sonnet-4-5` → `claude-sonnet-4-5`. */
export function modelFamily(model: string): string {
  const known = cache.get(model);
  if (known !== undefined) return known;
  const family = familyOf(model);
  if (cache.size >= CACHE_ENTRIES_MAX) cache.clear();
  cache.set(model, family);
  return family;
}

function familyOf(model: string): string {
  const slash = model.lastIndexOf('/');
  let name = (slash >= 0 ? model.slice(slash + 1) : model).toLowerCase().replace(VENDOR_PREFIX, '');
  for (let before = ''; before !== name; ) {
    before = name;
    const shorter = name.replace(REVISION_SUFFIX, '').replace(DATE_SUFFIX, '');
    if (shorter !== '') name = shorter;
  }
  // Azure writes gpt-35 where OpenAI writes gpt-3.5; Google's and Bedrock's Claude ids use dots and dashes alike.
  return name.replace(/^gpt-35/, 'gpt-3.5').replaceAll('.', '-');
}

/** Whether the id names one dated release rather than a family or an alias. */
export function isDatedModel(model: string): boolean {
  return DATED.test(model);
}
