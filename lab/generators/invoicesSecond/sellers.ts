export type Form = 'card' | 'amazon' | 'microsoft' | 'google' | 'french';

export interface Seller {
  id: string;
  form: Form;
  name: string;
  street: string;
  city: string;
  mail: string;
  tint: [number, number, number];
  /** Metered items with their dollars per unit. */
  meters: [name: string, rate: string][];
  /** Bought ahead of usage. */
  ahead: string | null;
  seats: [name: string, monthly: string][];
}

export const SELLERS: Seller[] = [
  {
    id: 'openai',
    form: 'card',
    name: 'OpenAI OpCo, LLC',
    street: '1455 3rd Street',
    city: 'San Francisco, CA 94158, United States',
    mail: 'invoices@openai.com',
    tint: [0.06, 0.64, 0.5],
    meters: [
      ['gpt-5.6-sol, input', '0.00000125'],
      ['gpt-5.6-sol, cached input', '0.000000125'],
      ['gpt-5.6-sol, output', '0.00001'],
      ['gpt-5.6-luna, input', '0.00000025'],
      ['gpt-5.6-luna, output', '0.000002'],
      ['o4-mini-2025-04-16, input', '0.0000011'],
      ['o4-mini-2025-04-16, output', '0.0000044'],
      ['web search tool calls', '0.01'],
      ['text-embedding-3-small, input', '0.00000002'],
    ],
    ahead: 'OpenAI API usage credit',
    seats: [
      ['ChatGPT Business', '30'],
      ['ChatGPT Enterprise seat', '60'],
    ],
  },
  {
    id: 'anthropic',
    form: 'card',
    name: 'Anthropic Ireland, Limited',
    street: '6th Floor South Bank House, Barrow Street',
    city: 'Dublin 4, D04 TR29, Ireland',
    mail: 'billing@anthropic.com',
    tint: [0.8, 0.47, 0.36],
    meters: [
      ['Claude Sonnet 5 Usage - Input Tokens', '0.000003'],
      ['Claude Sonnet 5 Usage - Output Tokens', '0.000015'],
      ['Claude Sonnet 5 Usage - Prompt Caching Write 5m', '0.00000375'],
      ['Claude Sonnet 5 Usage - Prompt Caching Read', '0.0000003'],
      ['Claude Opus 4.5 Usage - Input Tokens', '0.000005'],
      ['Claude Opus 4.5 Usage - Output Tokens', '0.000025'],
      ['Claude Haiku 4.5 Usage - Batch Output Tokens', '0.0000025'],
      ['Web Search Usage', '0.01'],
    ],
    ahead: 'One-time credit purchase',
    seats: [
      ['Team plan - Standard', '25'],
      ['Team plan - Premium', '150'],
      ['Claude Max plan - 20x', '200'],
    ],
  },
  {
    id: 'aws_bedrock',
    form: 'amazon',
    name: 'Amazon Web Services EMEA SARL',
    street: '38 Avenue John F. Kennedy',
    city: 'L-1855 Luxembourg',
    mail: 'aws.amazon.com/support',
    tint: [0.14, 0.18, 0.24],
    meters: [
      ['Amazon Bedrock', '0.003'],
      ['Claude Opus 5 (Amazon Bedrock Edition)', '0.005'],
      ['Amazon SageMaker', '0.119'],
      ['Amazon CloudWatch', '0.3'],
      ['AWS Data Transfer', '0.09'],
      ['Amazon Elastic Compute Cloud', '0.0416'],
      ['Amazon Simple Storage Service', '0.023'],
      ['AWS Lambda', '0.0000166667'],
    ],
    ahead: null,
    seats: [],
  },
  {
    id: 'azure_openai',
    form: 'microsoft',
    name: 'Microsoft Ireland Operations Limited',
    street: 'One Microsoft Place, South County Business Park',
    city: 'Leopardstown, Dublin 18, Ireland',
    mail: 'azure.microsoft.com/support',
    tint: [0, 0.47, 0.83],
    meters: [
      ['Azure OpenAI - 5.4 inp Gl 1M Tokens', '2.5'],
      ['Azure OpenAI - 5.4 cd Inp Gl 1M Tokens', '0.25'],
      ['Azure OpenAI - 5.4 opt Gl 1M Tokens', '15'],
      ['Azure OpenAI - gpt-4o-mini-0718-Inp-glbl Tokens', '0.00015'],
      ['Azure OpenAI - gpt-4o-mini-0718-Outp-glbl Tokens', '0.0006'],
      ['Azure OpenAI - 5.6 sol ShortCo Cd Wr Std Gl 1M Tokens', '1.5625'],
      ['Azure AI Search - Standard S1 Unit', '0.336'],
    ],
    ahead: null,
    seats: [],
  },
  {
    id: 'google',
    form: 'google',
    name: 'Google Cloud EMEA Limited',
    street: '70 Sir John Rogersons Quay',
    city: 'Dublin 2, Ireland',
    mail: 'cloud.google.com/support',
    tint: [0.26, 0.52, 0.96],
    meters: [
      ['Vertex AI: Gemini 2.5 Flash GA Text Input - Predictions', '0.0000003'],
      ['Vertex AI: Gemini 2.5 Flash GA Thinking Text Output - Predictions', '0.0000025'],
      ['Vertex AI: Gemini 3.1 Pro Text Input - Predictions', '0.000002'],
      ['Vertex AI: Gemini 3.1 Pro Text Output - Predictions', '0.000012'],
      ['Vertex AI: Gemini 2.5 Flash GA Text Input Caching (Long)', '0.00000003'],
      ['BigQuery: Analysis (eu)', '6.25'],
      ['Cloud Storage: Standard Storage Belgium', '0.02'],
    ],
    ahead: null,
    seats: [],
  },
  {
    id: 'mistral',
    form: 'french',
    name: 'Mistral AI SAS',
    street: '15, rue des Halles',
    city: '75001 Paris, France',
    mail: 'facturation@mistral.ai',
    tint: [0.98, 0.32, 0.06],
    meters: [
      ['mistral-large-4 input tokens', '0.000002'],
      ['mistral-large-4 output tokens', '0.000006'],
      ['mistral-small-2603 input tokens', '0.0000001'],
      ['mistral-small-2603 output tokens', '0.0000003'],
      ['codestral-embed tokens', '0.00000015'],
      ['OCR pages', '0.001'],
    ],
    ahead: 'Prepaid API credits',
    seats: [['Le Chat Enterprise', '24.99']],
  },
  {
    id: 'cohere',
    form: 'card',
    name: 'Cohere Inc.',
    street: '171 John Street, 2nd Floor',
    city: 'Toronto, ON M5T 1X3, Canada',
    mail: 'ar@cohere.com',
    tint: [0.22, 0.35, 0.3],
    meters: [
      ['command-a-03-2025 input tokens', '0.0000025'],
      ['command-a-03-2025 output tokens', '0.00001'],
      ['rerank-v3.5 searches', '0.002'],
      ['embed-v4.0 tokens', '0.00000012'],
      ['command-r7b-12-2024 output tokens', '0.00000015'],
    ],
    ahead: 'Prepaid balance top-up',
    seats: [['North - named user', '45']],
  },
  {
    id: 'xai',
    form: 'card',
    name: 'X.AI Corp.',
    street: '3180 18th Street',
    city: 'San Francisco, CA 94110, United States',
    mail: 'support@x.ai',
    tint: [0.1, 0.1, 0.1],
    meters: [
      ['grok-4.5: prompt text tokens', '0.000003'],
      ['grok-4.5: cached prompt text tokens', '0.00000075'],
      ['grok-4.5: completion tokens', '0.000015'],
      ['grok-4-1-fast-reasoning: prompt text tokens', '0.0000002'],
      ['grok-4-1-fast-reasoning: completion tokens', '0.0000005'],
      ['Live search sources', '0.025'],
    ],
    ahead: 'xAI API credits',
    seats: [['SuperGrok for Teams', '35']],
  },
];

export interface Buyer {
  name: string;
  street: string;
  city: string;
  taxId: string | null;
  land: string;
  code: string;
  /** Percent; null: no tax. */
  tax: { name: string; percent: string; reverse: boolean } | null;
}

export const BUYERS: Buyer[] = [
  {
    name: 'Halden & Voss GmbH',
    street: 'Speicherstrasse 22',
    city: '20457 Hamburg, Germany',
    taxId: 'DE811907980',
    land: 'DE',
    code: 'EUR',
    tax: { name: 'VAT Germany', percent: '19', reverse: true },
  },
  {
    name: 'Quayside Media Ltd',
    street: '31 Finsbury Square',
    city: 'London EC2A 1AG, United Kingdom',
    taxId: 'GB927536872',
    land: 'GB',
    code: 'GBP',
    tax: { name: 'VAT UK', percent: '20', reverse: false },
  },
  {
    name: 'Prairie Logic LLC',
    street: '400 Congress Ave',
    city: 'Austin, TX 78701, United States',
    taxId: null,
    land: 'US',
    code: 'USD',
    tax: { name: 'TX State Tax', percent: '6.25', reverse: false },
  },
  {
    name: 'Redwood Trail Outfitters',
    street: '77 Mission Street',
    city: 'San Francisco, CA 94105, United States',
    taxId: null,
    land: 'US',
    code: 'USD',
    tax: null,
  },
  {
    name: 'Maple Ridge Insurance Ltd.',
    street: '100 King Street West',
    city: 'Toronto, ON M5X 1A9, Canada',
    taxId: null,
    land: 'CA',
    code: 'CAD',
    tax: { name: 'HST Ontario', percent: '13', reverse: false },
  },
  {
    name: 'Tasman Learning Pty Ltd',
    street: '120 Collins Street',
    city: 'Melbourne VIC 3000, Australia',
    taxId: 'ABN 51 824 753 556',
    land: 'AU',
    code: 'AUD',
    tax: { name: 'GST', percent: '10', reverse: false },
  },
  {
    name: 'Kanda Systems KK',
    street: '1-7-2 Uchikanda',
    city: 'Chiyoda-ku, Tokyo 101-0047, Japan',
    taxId: 'T8010401050387',
    land: 'JP',
    code: 'JPY',
    tax: { name: 'Consumption tax', percent: '10', reverse: false },
  },
  {
    name: 'Rhône Conseil SARL',
    street: '4 place Bellecour',
    city: '69002 Lyon, France',
    taxId: 'FR40303265045',
    land: 'FR',
    code: 'EUR',
    tax: { name: 'VAT France', percent: '20', reverse: true },
  },
  {
    name: 'Zürisee Treuhand AG',
    street: 'Seestrasse 18',
    city: '8002 Zürich, Switzerland',
    taxId: 'CHE-116.281.710 MWST',
    land: 'CH',
    code: 'CHF',
    tax: { name: 'VAT Switzerland', percent: '8.1', reverse: false },
  },
  {
    name: 'Bergslagen Energi AB',
    street: 'Stora gatan 3',
    city: '722 12 Västerås, Sweden',
    taxId: 'SE556036079301',
    land: 'SE',
    code: 'SEK',
    tax: { name: 'VAT Sweden', percent: '25', reverse: true },
  },
  {
    name: 'Deccan Retail Pvt Ltd',
    street: '12 MG Road',
    city: 'Bengaluru 560001, India',
    taxId: '29AABCD1234E1Z5',
    land: 'IN',
    code: 'USD',
    tax: { name: 'IGST', percent: '18', reverse: true },
  },
];
