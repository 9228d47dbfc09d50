// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_page.h"

#include "metrics/metrics_text.h"
#include "web/page_files.h"
#include "web/web_path.h"

namespace braid {
namespace {

// The server's threads that make or await data; the others are for health and metrics.
constexpr uint32_t kDataAskersMax = WebServer::kThreads - 2;

WebReply reply_of(std::string_view content_type, std::string body) {
  WebReply reply;
  reply.content_type = content_type;
  reply.body = std::make_shared<const std::string>(std::move(body));
  return reply;
}

WebReply error_reply(const Status& error) {
  WebReply reply = text_reply(503, error.message());
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

}  // namespace

DaemonPage::DaemonPage(Loop& loop, const Clock& clock, DaemonPageSources sources)
    : sources_(std::move(sources)),
      questions_(loop),
      health_answers_(clock, kHealthFreshMs, WebServer::kThreads),
      data_answers_(clock, kDataFreshMs, kDataAskersMax) {}

DaemonPage::~DaemonPage() {
  questions_.close();  // or threads would wait for a loop that does not run any more
  server_.reset();
}

Result<std::unique_ptr<DaemonPage>> DaemonPage::create(Loop& loop, const Clock& clock,
                                                       DaemonPageOptions options,
                                                       DaemonPageSources sources) {
  std::unique_ptr<DaemonPage> page(new DaemonPage(loop, clock, std::move(sources)));
  auto server = WebServer::create(
      {std::move(options.address), options.port, std::move(options.access), page->routes()});
  if (!server) return server.status();
  page->server_ = std::move(server).value();
  return page;
}

std::vector<WebRoute> DaemonPage::routes() {
  std::vector<WebRoute> routes = {
      {"/healthz", WebAccess::Open, [this](const WebRequest&) { return health(); }},
      {"/readyz", WebAccess::Open, [this](const WebRequest&) { return readiness(); }},
      {"/metrics", WebAccess::Open, [this](const WebRequest&) {
         return reply_of(kMetricsContentType, metrics_text(sources_.metrics));
       }}};
  add_page_routes(routes);
  return routes;
}

void DaemonPage::set_access(PageAccessOptions access) { server_->set_access(std::move(access)); }

void DaemonPage::add_page_routes(std::vector<WebRoute>& routes) {
  for (const PageFile& file : page_files()) {
    routes.push_back({file.path, WebAccess::Page,
                      [reply = reply_of(file.content_type, std::string(file.content))](
                          const WebRequest&) { return reply; }});
  }
  routes.push_back({"/api/status", WebAccess::Data,
                    [this](const WebRequest& request) { return status(request.user); }});
  for (const PageJobQuestion& question : sources_.jobs) {
    routes.push_back({question.path, WebAccess::Data, [this, &question](const WebRequest& request) {
                        return answer_about(question, request);
                      }});
  }
}

WebReply DaemonPage::health() {
  return health_answers_.ask("", [this] {
    const auto answer = questions_.ask<bool>(
        [](const LoopQuestions::Reply<bool>& reply) { reply(true); }, kHealthTimeoutMs);
    return answer ? text_reply(200, "ok") : error_reply(answer.status());
  });
}

WebReply DaemonPage::readiness() {
  switch (phase_) {
    case DaemonPhase::Starting:
      return text_reply(503, "starting: takes no trainers yet");
    case DaemonPhase::Stopping:
      return text_reply(503, "stopping: takes no new trainers");
    case DaemonPhase::Serving:
      break;
  }
  WebReply reply = health();
  return reply.status == 200 ? text_reply(200, "ready") : reply;
}

WebReply DaemonPage::status(uid_t user) {
  return data_answers_.ask(fmt::format("status {}", user), [this, user] {
    auto told = questions_.ask<LoopStatus>(
        [this, user](LoopQuestions::Reply<LoopStatus> reply) {
          sources_.status(user, std::move(reply));
        },
        kStatusTimeoutMs);
    return told ? reply_of(kJson, sources_.status_json(std::move(*told)))
                : error_reply(told.status());
  });
}

WebReply DaemonPage::answer_about(const PageJobQuestion& question, const WebRequest& request) {
  PageJobQuestion::Asked asked{request.names.front(), request.user};
  asked.steps = query_number(request.query, "steps", PageJobQuestion::kStepsUsual, 1,
                             PageJobQuestion::kStepsMax);
  // The name comes last: whatever it is, no two questions have the same key.
  return data_answers_.ask(
      fmt::format("{} {} {} {}", question.path, asked.user, asked.steps, asked.job),
      [&] { return ask_about(question, asked); });
}

WebReply DaemonPage::ask_about(const PageJobQuestion& question,
                               const PageJobQuestion::Asked& asked) {
  // The question may be asked when this thread has given up.
  auto told = questions_.ask<Result<std::string>>(
      [&question, asked](LoopQuestions::Reply<Result<std::string>> reply) {
        question.ask(asked, std::move(reply));
      },
      question.timeout_ms);
  if (!told) return error_reply(told.status());
  if (!*told && told->status().code() == StatusCode::NotFound)
    return text_reply(404, told->status().message());
  if (!*told) return error_reply(told->status());
  if (**told == "[]")
    return text_reply(404, "No job of this name runs on this node, or none that you may see.");
  return reply_of(kJson, std::move(*told).value());
}

}  // namespace braid
