// Reads a request a line on standard input and answers each with a line: GitHub's own parser reads the workflow,
// GitHub's own evaluator its expressions. A request is {parse: {name, text}}, or {workflow, job, what, contexts, status}
// where `what` is a path in the converted workflow or job, e.g. ["if"] or ["strategy"].
import { createInterface } from "node:readline";
import { Evaluator, Lexer, Parser, data } from "@actions/expressions";
import { NoOperationTraceWriter, convertWorkflowTemplate, parseWorkflow } from "@actions/workflow-parser";

const workflows = new Map();

async function parse({ name, text }) {
  const parsed = parseWorkflow({ name, content: text }, new NoOperationTraceWriter());
  const template = parsed.value ? await convertWorkflowTemplate(parsed.context, parsed.value) : {};
  const errors = parsed.context.errors.getErrors().map((error) => error.message);
  workflows.set(name, template);
  const jobs = (template.jobs ?? []).map((job) => ({
    id: job.id.value,
    needs: (job.needs ?? []).map((need) => need.value),
    uses: job.ref?.value ?? null,
  }));
  return { errors, jobs };
}

function toData(value) {
  if (value === null || value === undefined) return new data.Null();
  if (typeof value === "string") return new data.StringData(value);
  if (typeof value === "number") return new data.NumberData(value);
  if (typeof value === "boolean") return new data.BooleanData(value);
  if (Array.isArray(value)) return new data.Array(...value.map(toData));
  return new data.Dictionary(...Object.entries(value).map(([key, member]) => ({ key, value: toData(member) })));
}

function fromData(value) {
  switch (value.kind) {
    case data.Kind.Null:
      return null;
    case data.Kind.Array:
      return value.values().map(fromData);
    case data.Kind.Dictionary:
    case data.Kind.CaseSensitiveDictionary:
      return Object.fromEntries(value.pairs().map((pair) => [pair.key, fromData(pair.value)]));
    default:
      return value.value;
  }
}

// What the runner service itself knows: how the jobs that this one needs, and theirs, have ended.
function statusFunctions(status) {
  const answers = {
    always: true,
    cancelled: status === "cancelled",
    failure: status === "failure",
    success: status === "success",
  };
  return Object.entries(answers).map(([name, answer]) => ({
    name,
    description: "",
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(answer),
  }));
}

function evaluate(expression, contexts, status) {
  const functions = statusFunctions(status);
  const { tokens } = new Lexer(expression).lex();
  const tree = new Parser(tokens, Object.keys(contexts), functions).parse();
  const known = new Map(functions.map((definition) => [definition.name, definition]));
  return fromData(new Evaluator(tree, toData(contexts), known).evaluate());
}

function resolve(token, contexts, status) {
  if (token === undefined || token === null) return null;
  if (token.isExpression) return evaluate(token.expression, contexts, status);
  if (typeof token.count === "number" && typeof token.get === "function") {
    const members = Array.from({ length: token.count }, (_, index) => token.get(index));
    if (members.every((member) => member.key !== undefined)) {
      return Object.fromEntries(members.map(({ key, value }) => [key.value, resolve(value, contexts, status)]));
    }
    return members.map((member) => resolve(member, contexts, status));
  }
  return "value" in token ? token.value : null;
}

function find({ workflow, job, what, contexts, status }) {
  const template = workflows.get(workflow);
  let home = template;
  if (job !== null) home = template.jobs.find((one) => one.id.value === job);
  return { value: resolve(home[what], contexts, status) };
}

async function main() {
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      const request = JSON.parse(line);
      answer = request.parse ? await parse(request.parse) : find(request);
    } catch (error) {
      answer = { error: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}

main();
